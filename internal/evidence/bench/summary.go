package bench

// SummarySchema names the layout of Summary.
const SummarySchema = "temper.dev/summary/v1"

// Summary is what records add up to.
type Summary struct {
	Schema  string      `json:"schema"`
	Verdict string      `json:"verdict"`
	Pools   []*Pooled   `json:"pools"`
	Bars    []BarResult `json:"bars"`
	AA      *AA         `json:"aa,omitempty"`
}

// NewSummary pools records by plan and holds them against the bars, with the spread of the A/A records if there are any.
func NewSummary(records, aaRecords []Record) (*Summary, error) {
	pools, err := PoolAll(records)
	if err != nil {
		return nil, err
	}
	s := &Summary{Schema: SummarySchema, Pools: pools}
	if len(aaRecords) > 0 {
		aaPools, err := PoolAll(aaRecords)
		if err != nil {
			return nil, err
		}
		if s.AA, err = NewAA(aaPools); err != nil {
			return nil, err
		}
	}
	s.Bars = Check(pools, s.AA)
	s.Verdict = Verdict(pools, s.Bars)
	return s, nil
}
