package bench

import (
	"fmt"
	"math"
)

// AA is a study of stock against stock: how far equal arms differ by chance, and how long windows must be so that a
// bar is more than chance.
type AA struct {
	Method string    `json:"method"`
	Groups []AAGroup `json:"groups"`
}

// AAMethod states how the study works; every form of it carries the text.
const AAMethod = `Every valid window of a stock arm is one sample. Unpaired spread: the 2.5th to 97.5th percentile of the ratio of a figure between all ordered pairs of different seeds, of the same arm at the same step. Paired spread: the same over the ratios of the second to the first run of one arm within a seed, where the records run an arm twice. A bar at one step uses the paired spread where there is one; a bar over the floor combines the spreads of its step and of step 0, h = sqrt((h1^2 + h0^2) / 2), where h is the larger of |ln low| and |ln high|. Of several arms the narrowest counts. Spreads are taken to shrink with the square root of the measured time: h(n seeds of t seconds) = h(study) * sqrt(study seconds / (n * t)). A bar needs the time at which h equals the distance of its limit from 1; a bar whose limit is 1 can never lie outside the spread, so the time is that which tells 5 % apart. No window may be so short that fewer than ten requests lie beyond the percentile.`

// AAGroup is the study of one plan.
type AAGroup struct {
	Plan       string     `json:"plan"`
	Conditions Conditions `json:"conditions"`
	Seeds      int        `json:"seeds"`
	Cells      []AACell   `json:"cells"`
	Lengths    []AALength `json:"lengths"`
}

// AACell is the spread of a stock arm's figures at one step.
type AACell struct {
	Arm        string     `json:"arm"`
	Background int        `json:"background"`
	Visit      int        `json:"visit,omitempty"`
	Figures    []AAFigure `json:"figures"`
}

// AAFigure is the spread of one figure over the seeds: ms, iterations or cores.
type AAFigure struct {
	Figure   Figure  `json:"figure"`
	Windows  int     `json:"windows"` // valid ones
	Min      float64 `json:"min"`
	Median   float64 `json:"median"`
	Max      float64 `json:"max"`
	Unpaired *Spread `json:"unpaired,omitempty"`
	Paired   *Spread `json:"paired,omitempty"`
}

// Spread is the range (2.5th to 97.5th percentile) of the ratio of two windows that should be equal.
type Spread struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Pairs int     `json:"pairs"`
}

var aaFigures = []Figure{P50, P90, P99, Mean, Work, BackgroundCores, IdleCores}

// NewAA studies the stock arms of pools; others it leaves out. Every pool needs two seeds, and ten are better.
func NewAA(pools []*Pooled) (*AA, error) {
	study := &AA{Method: AAMethod}
	for _, p := range pools {
		if len(p.Seeds) < 2 {
			return nil, fmt.Errorf("%s: an A/A study needs at least 2 seeds and has %d", p.Plan(), len(p.Seeds))
		}
		g := AAGroup{Plan: p.Plan(), Conditions: p.Conditions, Seeds: len(p.Seeds)}
		for _, row := range p.Rows() {
			if IsStock(row.Arm.Label) {
				g.Cells = append(g.Cells, p.studyCell(row))
			}
		}
		if len(g.Cells) == 0 {
			return nil, fmt.Errorf("%s: an A/A study needs a stock arm (one of %s)", p.Plan(), list(StockArms))
		}
		g.Lengths = g.lengths(p)
		study.Groups = append(study.Groups, g)
	}
	return study, nil
}

func (p *Pooled) studyCell(row Row) AACell {
	out := AACell{Arm: row.Arm.Label, Background: row.Cell.Background, Visit: row.Cell.Visit}
	second := p.Arm(row.Arm.Label+" #2").Cell(row.Cell.Background, row.Cell.Visit)
	for _, name := range aaFigures {
		values := row.Cell.bySeed(name)
		valid := present(values)
		if len(valid) == 0 {
			continue
		}
		f := AAFigure{
			Figure: name, Windows: len(valid),
			Min: percentile(valid, 0), Median: median(valid), Max: percentile(valid, 1),
			Unpaired: spreadOf(unpairedRatios(valid)),
		}
		if second != nil {
			f.Paired = spreadOf(pairedRatios(values, second.bySeed(name)))
		}
		out.Figures = append(out.Figures, f)
	}
	return out
}

// bySeed is a figure of each window, NaN for one that does not count.
func (c *Cell) bySeed(name Figure) []float64 {
	values := make([]float64, len(c.Windows))
	for i, w := range c.Windows {
		values[i] = math.NaN()
		if w.Valid {
			values[i] = FiguresOf(w.Step).At(name)
		}
	}
	return values
}

func present(values []float64) []float64 {
	var out []float64
	for _, v := range values {
		if !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

func unpairedRatios(values []float64) []float64 {
	var ratios []float64
	for i, a := range values {
		for j, b := range values {
			if i != j {
				ratios = append(ratios, over(a, b))
			}
		}
	}
	return present(ratios)
}

func pairedRatios(first, second []float64) []float64 {
	var ratios []float64
	for i := range first {
		ratios = append(ratios, over(second[i], first[i]))
	}
	return present(ratios)
}

// spreadOf is nil for fewer than two ratios, and for a figure that is zero throughout.
func spreadOf(ratios []float64) *Spread {
	if len(ratios) < 2 {
		return nil
	}
	return &Spread{percentile(ratios, 0.025), percentile(ratios, 0.975), len(ratios)}
}
