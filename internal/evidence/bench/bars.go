package bench

import "slices"

// Reference is what a bar divides by.
type Reference string

// References of the bars.
const (
	OverFloor Reference = "the floor"                       // see Pooled.Floor
	OverStock Reference = "the best stock arm at that step" // best for the bar's own figure
	OverMost  Reference = "the arm that does most at that step"
	OverAlone Reference = "the same arm at 0 spinners"
	// OverKeepers is proposed in place of OverMost by docs/decisions/0006: what a user who needs the tail can choose between.
	OverKeepers Reference = "the arm that does most at that step and keeps the bar for p99 over the floor"
)

// Steps says at which steps a bar is checked.
type Steps string

// Sets of steps.
const (
	EveryStep  Steps = "every step"
	StepZero   Steps = "0 spinners"
	LoadedStep Steps = "every step >= 1"
)

// Bar is a promise about Temper's arm, checked at each of its steps.
type Bar struct {
	ID        string    `json:"id"`
	Scenarios []string  `json:"scenarios"`
	Load      float64   `json:"load,omitempty"` // the only load at which it is checked; 0: at any
	Figure    Figure    `json:"figure"`
	Over      Reference `json:"over"`
	Steps     Steps     `json:"steps"`
	AtLeast   bool      `json:"at_least,omitempty"` // the ratio must not be below Limit; otherwise, not above
	Limit     float64   `json:"limit"`
	// Preemptions widens the limit to the floor plus so many measured preemptions, where that is more.
	Preemptions float64 `json:"preemptions,omitempty"`
}

// Bars are the bars that a record can decide.
var Bars = []Bar{
	{ID: "chain-p50-floor", Scenarios: []string{chain}, Figure: P50, Over: OverFloor, Steps: EveryStep, Limit: 1.08},
	{ID: "chain-p99-floor", Scenarios: []string{chain}, Figure: P99, Over: OverFloor, Steps: EveryStep, Limit: 1.25},
	{ID: "p99-stock", Scenarios: []string{chain, memcached}, Figure: P99, Over: OverStock, Steps: EveryStep, Limit: 1.00},
	{ID: "memcached-p99-floor", Scenarios: []string{memcached}, Figure: P99, Over: OverFloor, Steps: EveryStep, Limit: 1.30, Preemptions: 2},
	{ID: "alone-p50-stock", Scenarios: []string{chain, memcached}, Figure: P50, Over: OverStock, Steps: StepZero, Limit: 1.03},
	{ID: "alone-p99-stock", Scenarios: []string{chain, memcached}, Figure: P99, Over: OverStock, Steps: StepZero, Limit: 1.10},
	{ID: "work-most", Scenarios: []string{chain, memcached}, Figure: Work, Over: OverMost, Steps: LoadedStep, AtLeast: true, Limit: 0.97},
	{ID: "work-keepers", Scenarios: []string{chain, memcached}, Figure: Work, Over: OverKeepers, Steps: LoadedStep, AtLeast: true, Limit: 0.97},
	{ID: "web-throughput", Scenarios: []string{web}, Load: 1, Figure: Requests, Over: OverAlone, Steps: LoadedStep, AtLeast: true, Limit: 0.99},
}

// Name is the bar in words, without its limit.
func (b Bar) Name() string {
	return b.Figure.Short() + " at " + string(b.Steps) + " over " + string(b.Over)
}

// Text is the bar in words.
func (b Bar) Text() string {
	limit := "at most "
	if b.AtLeast {
		limit = "at least "
	}
	text := b.Name() + ": " + limit + twoDecimals(b.Limit)
	if b.Preemptions > 0 {
		text += ", or the floor plus " + trimFloat(b.Preemptions) + " measured preemptions if that is more"
	}
	return text
}

func (b Bar) appliesTo(c Conditions) bool {
	return slices.Contains(b.Scenarios, c.Scenario) && (b.Load == 0 || b.Load == c.Load)
}

func (s Steps) include(background int) bool {
	switch s {
	case StepZero:
		return background == 0
	case LoadedStep:
		return background > 0
	}
	return true
}

// limitFor is the bar's limit in this pool: as the table of bars says, or wider by the measured preemptions.
func (b Bar) limitFor(p *Pooled) float64 {
	floor := p.Floor(b.Figure)
	if b.Preemptions > 0 && p.PreemptionMS > 0 && floor > 0 {
		return max(b.Limit, 1+b.Preemptions*p.PreemptionMS/floor)
	}
	return b.Limit
}

// holds says whether a ratio keeps a limit. The last digit of a division is no reason to fail.
func (b Bar) holds(ratio, limit float64) bool {
	const slack = 1e-9
	if b.AtLeast {
		return ratio >= limit-slack
	}
	return ratio <= limit+slack
}
