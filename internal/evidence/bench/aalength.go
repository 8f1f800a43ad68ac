package bench

import (
	"fmt"
	"math"
)

// finest is the difference that a bar with the limit 1 should tell apart.
const finest = 1.05

// leastRequests is how many requests a figure needs to exist at all: ten beyond the percentile.
func leastRequests(f Figure) float64 {
	switch f {
	case P50:
		return 20
	case P99:
		return 1000
	}
	return 0
}

// AALength is how much measured time a bar needs at one step.
type AALength struct {
	Bar        string  `json:"bar"`
	Background int     `json:"background"`
	Visit      int     `json:"visit,omitempty"`
	Limit      float64 `json:"limit"` // 1.05 stands in for a bar of 1
	// SpreadHigh is the ratio that equal arms reach by chance in one window of the study's length.
	SpreadHigh float64 `json:"spread_high"`
	// Seconds of windows in all, for each arm and step: seeds times length.
	Seconds float64 `json:"seconds"`
	// Seeds is how many windows of the study's length that makes; SecondsOf3 the length of three windows that do.
	Seeds      int     `json:"seeds"`
	SecondsOf3 float64 `json:"seconds_of_3"`
}

// lengths are the times that each bar needs at each step of the plan.
func (g *AAGroup) lengths(p *Pooled) []AALength {
	var out []AALength
	for _, b := range Bars {
		if !b.appliesTo(p.Conditions) {
			continue
		}
		for _, step := range g.steps() {
			h := g.halfWidth(b, step.Background, step.Visit)
			if !b.Steps.include(step.Background) || math.IsNaN(h) {
				continue
			}
			limit := b.limitFor(p)
			if limit == 1 {
				limit = finest
			}
			t := p.Conditions.Seconds
			seconds := t * math.Pow(h/math.Abs(math.Log(limit)), 2)
			if rate := p.Seeds[0].RateRPS; rate > 0 {
				seconds = max(seconds, leastRequests(b.Figure)/rate)
			}
			out = append(out, AALength{
				Bar: b.ID, Background: step.Background, Visit: step.Visit, Limit: limit, SpreadHigh: math.Exp(h),
				Seconds: seconds, Seeds: max(1, int(math.Ceil(seconds/t-1e-9))), SecondsOf3: seconds / 3,
			})
		}
	}
	return out
}

// steps are the steps of the group's first arm, in the order they ran.
func (g *AAGroup) steps() []AACell {
	var out []AACell
	for _, c := range g.Cells {
		if c.Arm == g.Cells[0].Arm {
			out = append(out, c)
		}
	}
	return out
}

// halfWidth is h of the method for two single windows of the study, NaN where the study cannot say.
func (g *AAGroup) halfWidth(b Bar, background, visit int) float64 {
	narrowest := math.NaN()
	for _, c := range g.Cells {
		if c.Background != background || c.Visit != visit || c.Arm != baseName(c.Arm) { // an arm's second run is in its pairs
			continue
		}
		h := c.halfWidth(b.Figure, b.Over != OverFloor)
		if b.Over == OverFloor {
			h = math.Sqrt((h*h + math.Pow(g.aloneHalfWidth(c.Arm, b.Figure), 2)) / 2)
		}
		narrowest = smaller(narrowest, h)
	}
	return narrowest
}

func (g *AAGroup) aloneHalfWidth(arm string, name Figure) float64 {
	for _, c := range g.Cells {
		if c.Arm == arm && c.Background == 0 && c.Visit == 0 {
			return c.halfWidth(name, false)
		}
	}
	return math.NaN()
}

func (c *AACell) halfWidth(name Figure, paired bool) float64 {
	for _, f := range c.Figures {
		if f.Figure != name {
			continue
		}
		s := f.Unpaired
		if paired && f.Paired != nil {
			s = f.Paired
		}
		if s != nil && s.Low > 0 {
			return math.Max(math.Abs(math.Log(s.Low)), math.Abs(math.Log(s.High)))
		}
	}
	return math.NaN()
}

// spread is what equal arms give by chance for a bar at a cell, scaled to the pool's seeds and windows. It is nil
// without a study of the pool's plan on its kernel.
func (study *AA) spread(p *Pooled, b Bar, c *Cell) *Spread {
	if study == nil {
		return nil
	}
	for i := range study.Groups {
		g := &study.Groups[i]
		if g.Plan != p.Plan() || g.Conditions.Kernel != p.Conditions.Kernel || g.Conditions.Machine.Kind != p.Conditions.Machine.Kind {
			continue
		}
		h := g.halfWidth(b, c.Background, c.Visit)
		if math.IsNaN(h) {
			return nil
		}
		h *= math.Sqrt(g.Conditions.Seconds / (p.Conditions.Seconds * float64(max(1, c.Valid()))))
		return &Spread{Low: math.Exp(-h), High: math.Exp(h)}
	}
	return nil
}

// Worst are the lengths at the step that needs most, one for each bar.
func (g *AAGroup) Worst() []AALength {
	var out []AALength
	index := map[string]int{}
	for _, l := range g.Lengths {
		i, ok := index[l.Bar]
		switch {
		case !ok:
			index[l.Bar] = len(out)
			out = append(out, l)
		case l.Seconds > out[i].Seconds:
			out[i] = l
		}
	}
	return out
}

// Need is the length in words.
func (l AALength) Need() string {
	return fmt.Sprintf("%.1f s in all: %s as long as the study's, or 3 of %.1f s", l.Seconds, plural(l.Seeds, "window", "windows"), l.SecondsOf3)
}
