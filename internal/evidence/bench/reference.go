package bench

import "math"

// Arm finds an arm by its label, nil if the pool has none.
func (p *Pooled) Arm(label string) *PoolArm {
	for i := range p.Arms {
		if p.Arms[i].Label == label {
			return &p.Arms[i]
		}
	}
	return nil
}

// Cell finds a step, nil if the arm has none.
func (a *PoolArm) Cell(background, visit int) *Cell {
	if a == nil {
		return nil
	}
	for i := range a.Cells {
		if c := &a.Cells[i]; c.Background == background && c.Visit == visit {
			return c
		}
	}
	return nil
}

// alone is the arm's first window without background work.
func (a *PoolArm) alone() *Cell { return a.Cell(0, 0) }

// pick is the best of a figure over the arms that match, at one step, by keep (smaller or larger).
func (p *Pooled) pick(match func(label string) bool, background, visit int, name Figure, keep func(a, b float64) float64) quantity {
	return func(draw int) float64 {
		best := math.NaN()
		for i := range p.Arms {
			if match(p.Arms[i].Label) {
				best = keep(best, p.Arms[i].Cell(background, visit).of(name)(draw))
			}
		}
		return best
	}
}

// pickArm is the label of the arm that pick chooses, "" if there is none.
func (p *Pooled) pickArm(match func(label string) bool, background, visit int, name Figure, keep func(a, b float64) float64) string {
	value := p.pick(match, background, visit, name, keep)(-1)
	for i := range p.Arms {
		if match(p.Arms[i].Label) && p.Arms[i].Cell(background, visit).of(name)(-1) == value {
			return p.Arms[i].Label
		}
	}
	return ""
}

func anyArm(string) bool { return true }

func oursOrStock(label string) bool { return IsOurs(label) || IsStock(label) }

// floor is the smaller of Temper's and the best stock arm's figure without background work, so that nobody gains by
// a slow baseline.
func (p *Pooled) floor(name Figure) quantity { return p.pick(oursOrStock, 0, 0, name, smaller) }

// Floor is the floor of a latency in ms, NaN where no arm has it.
func (p *Pooled) Floor(name Figure) float64 { return p.floor(name)(-1) }

// OverFloor is a cell's latency over the floor, nil where either is missing.
func (p *Pooled) OverFloor(c *Cell, name Figure) *Ratio { return p.ratio(c.of(name), p.floor(name)) }

// OverAlone is a cell's latency over that of the same arm without background work.
func (p *Pooled) OverAlone(a *PoolArm, c *Cell, name Figure) *Ratio {
	return p.ratio(c.of(name), a.alone().of(name))
}

// WorkShare is a cell's background work over that of the arm that did most at its step.
func (p *Pooled) WorkShare(c *Cell) *Ratio {
	return p.ratio(c.of(Work), p.pick(anyArm, c.Background, c.Visit, Work, larger))
}

// BestOverall is the stock arm with the smallest geometric mean of p99 over the steps that are valid in every stock
// arm, "" without one.
func (p *Pooled) BestOverall() string {
	best, bestMean := "", math.NaN()
	for i := range p.Arms {
		a := &p.Arms[i]
		if !IsStock(a.Label) {
			continue
		}
		var tails []float64
		for j := range a.Cells {
			if c := &a.Cells[j]; p.everyStockValid(c.Background, c.Visit) {
				tails = append(tails, c.Figures.P99)
			}
		}
		if m := geometricMean(tails); !math.IsNaN(m) && !(bestMean <= m) {
			best, bestMean = a.Label, m
		}
	}
	return best
}

func (p *Pooled) everyStockValid(background, visit int) bool {
	for i := range p.Arms {
		if !IsStock(p.Arms[i].Label) {
			continue
		}
		if c := p.Arms[i].Cell(background, visit); c == nil || c.Figures == nil {
			return false
		}
	}
	return true
}
