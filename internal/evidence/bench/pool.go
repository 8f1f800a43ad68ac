package bench

import (
	"cmp"
	"fmt"
	"slices"
)

// Pooled is what several seeds of one plan add up to.
type Pooled struct {
	Conditions   Conditions `json:"conditions"`
	Seeds        []Run      `json:"seeds"` // ascending
	PreemptionMS float64    `json:"preemption_ms,omitempty"`
	Arms         []PoolArm  `json:"arms"` // stock, peers, Temper

	draws [][]int // the bootstrap's: how often each seed counts in each draw
}

// Run is what differs between the seeds besides the figures.
type Run struct {
	Seed          int64    `json:"seed"`
	RateRPS       float64  `json:"rate_rps"`
	SaturationRPS float64  `json:"saturation_rps,omitempty"`
	Order         []string `json:"order"` // of the arms
}

// PoolArm is one arm over all seeds.
type PoolArm struct {
	Label   string `json:"arm"` // the name, with " #2" for the second of equal arms
	Preempt string `json:"preempt"`
	Cells   []Cell `json:"steps"` // in the order they ran
}

// Cell is one step of one arm over all seeds.
type Cell struct {
	Background int      `json:"background"`       // spinners
	Visit      int      `json:"visit,omitempty"`  // 0 for the ladder's first window at this step, 1 on its way down
	Figures    *Figures `json:"pooled,omitempty"` // of the valid windows; absent without one
	Source     string   `json:"source,omitempty"` // how the latencies were pooled: "window", "histograms", "medians"
	Windows    []Window `json:"windows"`          // one a seed, in the order of the seeds, invalid ones too

	bins []bin     // of all seeds, ascending; nil unless every valid window has a histogram
	boot []Figures // one a draw
}

// Window is one seed's window, without its histogram.
type Window struct {
	Seed int64 `json:"seed"`
	Step
}

// Pool adds up the records of one plan under different seeds. It refuses records that differ in anything else.
func Pool(records []Record) (*Pooled, error) {
	if len(records) == 0 {
		return nil, fmt.Errorf("no records to pool")
	}
	records = slices.SortedStableFunc(slices.Values(records), func(a, b Record) int { return cmp.Compare(a.Seed, b.Seed) })
	for i := range records {
		if err := checkRecord(records[i]); err != nil {
			return nil, err
		}
		if i > 0 {
			if err := samePlan(records[i-1], records[i]); err != nil {
				return nil, err
			}
		}
	}
	p := &Pooled{Conditions: conditionsOf(records[0])}
	var costs []float64
	for _, r := range records {
		p.Seeds = append(p.Seeds, Run{r.Seed, r.RateRPS, r.SaturationRPS, armLabels(r.Arms)})
		if r.Machine.PreemptionMS > 0 {
			costs = append(costs, r.Machine.PreemptionMS)
		}
	}
	if len(costs) > 0 {
		p.PreemptionMS = median(costs)
	}
	p.draws = drawSeeds(len(records))
	return p, p.addArms(records)
}

// addArms builds the arms from records of one plan, sorted by seed.
func (p *Pooled) addArms(records []Record) error {
	labels := slices.SortedFunc(slices.Values(armLabels(records[0].Arms)), compareArms)
	for _, label := range labels {
		var runs []Arm
		for _, r := range records {
			runs = append(runs, r.Arms[slices.Index(armLabels(r.Arms), label)])
		}
		arm := PoolArm{Label: label, Preempt: runs[0].Preempt}
		visits := map[int]int{}
		for i, s := range runs[0].Steps {
			cell := Cell{Background: s.Background, Visit: visits[s.Background]}
			visits[s.Background]++
			for j, run := range runs {
				cell.Windows = append(cell.Windows, Window{records[j].Seed, run.Steps[i]})
			}
			if err := cell.pool(p.draws); err != nil {
				return fmt.Errorf("arm %s, %d spinners: %w", label, s.Background, err)
			}
			arm.Cells = append(arm.Cells, cell)
		}
		p.Arms = append(p.Arms, arm)
	}
	return nil
}
