package bench

import (
	"fmt"
	"math"
)

// BarResult is one bar at one step of one pool.
type BarResult struct {
	Bar        string  `json:"bar"`  // its ID
	Name       string  `json:"name"` // in words
	Text       string  `json:"text"` // and with its limit
	Plan       string  `json:"plan"` // scenario, load and CPUs, in words
	Scenario   string  `json:"scenario"`
	Load       float64 `json:"load,omitempty"`
	CPUs       int     `json:"cpus"`
	Arm        string  `json:"arm"`
	Background int     `json:"background"`
	Visit      int     `json:"visit,omitempty"`

	AtLeast bool    `json:"at_least,omitempty"`
	Limit   float64 `json:"limit"`   // what the bar says here
	Applied float64 `json:"applied"` // what was asked: Limit or, where that lies inside the A/A spread, the spread
	// SpreadLow and SpreadHigh are the ratios that equal arms give by chance (95 %), scaled to this pool's seeds and
	// windows; 0 without an A/A study of this plan.
	SpreadLow    float64 `json:"spread_low,omitempty"`
	SpreadHigh   float64 `json:"spread_high,omitempty"`
	InsideSpread bool    `json:"inside_spread,omitempty"`

	Measured *Ratio  `json:"measured,omitempty"` // absent if a window that it needs does not count
	Figure   float64 `json:"figure,omitempty"`   // Temper's, in the figure's own unit
	Against  string  `json:"against,omitempty"`  // the arm whose figure the reference is

	// BestStock is the stock arm that is best for this figure at this step, and what it reaches by the same measure.
	BestStock      string  `json:"best_stock,omitempty"`
	BestStockRatio float64 `json:"best_stock_ratio,omitempty"`
	// BestOverall is the stock arm that is best over all steps (see Pooled.BestOverall), and Temper's figure over its.
	BestOverall     string  `json:"best_overall,omitempty"`
	OverBestOverall float64 `json:"over_best_overall,omitempty"`

	Pass   bool   `json:"pass"`
	Reason string `json:"reason"` // why, in words
}

// Check holds Temper's arms of each pool against every bar at every step. aa may be nil. A pool without an arm of
// Temper's gives no results.
func Check(pools []*Pooled, aa *AA) []BarResult {
	var results []BarResult
	for _, p := range pools {
		for _, row := range p.Rows() {
			for _, b := range Bars {
				if IsOurs(row.Arm.Label) && b.appliesTo(p.Conditions) && b.Steps.include(row.Cell.Background) {
					results = append(results, p.check(b, row, aa))
				}
			}
		}
	}
	return results
}

// Failed are the results that do not pass.
func Failed(results []BarResult) []BarResult {
	var failed []BarResult
	for _, r := range results {
		if !r.Pass {
			failed = append(failed, r)
		}
	}
	return failed
}

func (p *Pooled) check(b Bar, row Row, aa *AA) BarResult {
	c := row.Cell
	r := BarResult{
		Bar: b.ID, Name: b.Name(), Text: b.Text(), Plan: p.Plan(), Scenario: p.Conditions.Scenario, Load: p.Conditions.Load,
		CPUs: p.Conditions.CPUs, Arm: row.Arm.Label, Background: c.Background, Visit: c.Visit, AtLeast: b.AtLeast, Limit: b.limitFor(p),
	}
	r.Applied = r.Limit
	reference, against := p.reference(b, row)
	r.Against = against
	r.Measured = p.ratio(c.of(b.Figure), reference)
	p.compareStock(b, c, reference, &r)
	applySpread(b, aa.spread(p, b, c), &r)
	if c.Figures != nil {
		r.Figure = c.Figures.At(b.Figure)
	}
	r.judge(b, c)
	return r
}

// reference is what the bar divides by at a row, and the arm that it comes from.
func (p *Pooled) reference(b Bar, row Row) (quantity, string) {
	c := row.Cell
	if b.Over == OverAlone {
		return row.Arm.alone().of(b.Figure), row.Arm.Label
	}
	match, background, visit, keep := IsStock, c.Background, c.Visit, smaller
	switch b.Over {
	case OverFloor:
		match, background, visit = oursOrStock, 0, 0
	case OverMost:
		match, keep = anyArm, larger
	case OverKeepers:
		match, keep = func(label string) bool { return p.keepsTail(p.Arm(label).Cell(background, visit)) }, larger
	}
	return p.pick(match, background, visit, b.Figure, keep), p.pickArm(match, background, visit, b.Figure, keep)
}

// tailBar is the bar of the pool's scenario for p99 over the floor, and whether it has one.
func (p *Pooled) tailBar() (Bar, bool) {
	for _, b := range Bars {
		if b.Figure == P99 && b.Over == OverFloor && b.appliesTo(p.Conditions) {
			return b, true
		}
	}
	return Bar{}, false
}

// keepsTail says whether a cell's p99 keeps that bar.
func (p *Pooled) keepsTail(c *Cell) bool {
	b, ok := p.tailBar()
	return ok && b.holds(over(c.of(P99)(-1), p.Floor(P99)), b.limitFor(p))
}

// compareStock notes what the best stock arms reach by the same measure.
func (p *Pooled) compareStock(b Bar, c *Cell, reference quantity, r *BarResult) {
	keep := smaller
	if b.AtLeast {
		keep = larger
	}
	best := p.pick(IsStock, c.Background, c.Visit, b.Figure, keep)
	label := p.pickArm(IsStock, c.Background, c.Visit, b.Figure, keep)
	if b.Over == OverAlone {
		reference = p.Arm(label).alone().of(b.Figure)
	}
	if v := over(best(-1), reference(-1)); !math.IsNaN(v) {
		r.BestStock, r.BestStockRatio = label, v
	}
	overall := p.BestOverall()
	if v := over(c.of(b.Figure)(-1), p.Arm(overall).Cell(c.Background, c.Visit).of(b.Figure)(-1)); !math.IsNaN(v) {
		r.BestOverall, r.OverBestOverall = overall, v
	}
}

// applySpread replaces a limit that equal arms would miss by chance.
func applySpread(b Bar, s *Spread, r *BarResult) {
	if s == nil {
		return
	}
	r.SpreadLow, r.SpreadHigh = s.Low, s.High
	switch {
	case b.AtLeast && s.Low < r.Limit:
		r.InsideSpread, r.Applied = true, s.Low
	case !b.AtLeast && s.High > r.Limit:
		r.InsideSpread, r.Applied = true, s.High
	}
}

// judge decides, and says why.
func (r *BarResult) judge(b Bar, c *Cell) {
	switch {
	case c.Figures == nil:
		r.Reason = "not measured: " + c.InvalidText()
		return
	case r.Measured == nil:
		r.Reason = "not measured: no valid window of " + string(b.Over)
		return
	}
	r.Pass = b.holds(r.Measured.Value, r.Applied)
	r.Reason = fmt.Sprintf("%s, allowed %s", threeDecimals(r.Measured.Value), threeDecimals(r.Applied))
	if r.InsideSpread {
		r.Reason += fmt.Sprintf(" (the A/A spread; the bar of %s lies inside it)", twoDecimals(r.Limit))
	}
	if text := c.InvalidText(); text != "" {
		r.Reason += "; " + text
	}
}

func twoDecimals(v float64) string {
	if math.IsNaN(v) {
		return missing
	}
	return fmt.Sprintf("%.2f", v)
}

func threeDecimals(v float64) string { return fmt.Sprintf("%.3f", v) }
