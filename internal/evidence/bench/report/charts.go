package report

import (
	"fmt"
	"math"
	"strings"

	"temper.dev/temper/internal/base/plot"
	"temper.dev/temper/internal/evidence/bench"
)

// What the marks beside an arm's line are.
const (
	runName     = "one seed"
	invalidName = "invalid window"
)

// latencyChart is one percentile against the steps.
func latencyChart(p *bench.Pooled, id string, name bench.Figure) plot.Chart {
	c := plot.Chart{
		ID: id, Title: name.Short() + " latency under background load",
		XLabel: "background spinners", YLabel: p.TimeUnit(),
		XTicks: stepTicks(p, 0), FromZero: true, RunName: runName, InvalidName: invalidName,
		Series: stepSeries(p, 0, func(_ *bench.Cell, f bench.Figures) float64 { return f.At(name) }),
	}
	c.Description = describe(c, p.TimeUnit())
	if floor := p.Floor(name); !math.IsNaN(floor) {
		c.Level = &plot.Level{Y: floor, Label: fmt.Sprintf("floor %s ms", bench.FormatMS(floor))}
	}
	return c
}

// workChart is background work against the steps, over the arm that did most at each.
func workChart(p *bench.Pooled, id string) plot.Chart {
	most := map[string]float64{}
	for _, r := range p.Rows() {
		if r.Cell.Figures != nil {
			most[r.Cell.Label()] = max(most[r.Cell.Label()], r.Cell.Figures.Work)
		}
	}
	c := plot.Chart{
		ID: id, Title: "Background work done, over the most",
		XLabel: "background spinners", YLabel: "share of the arm that did most",
		XTicks: stepTicks(p, 1), FromZero: true, NeverLog: true, RunName: runName, InvalidName: invalidName,
		Series: stepSeries(p, 1, func(cell *bench.Cell, f bench.Figures) float64 { return f.Work / most[cell.Label()] }),
	}
	c.Description = describe(c, "of the most")
	return c
}

// curveChart is the latency at every percentile of one step, with as much room for each further nine.
func curveChart(p *bench.Pooled, id string, step int) plot.Chart {
	c := plot.Chart{
		ID: id, Title: fmt.Sprintf("Latency curve at %s", bench.Spinners(step, 0)),
		XLabel: "percentile of requests (log scale towards 100)", YLabel: p.TimeUnit(), FromZero: true,
	}
	last := 0.0
	for _, r := range p.Rows() {
		if r.Cell.Background != step || r.Cell.Visit != 0 {
			continue
		}
		s := plot.Series{Label: r.Arm.Label, Class: bench.ArmClass(r.Arm.Label), Smooth: true}
		for _, q := range r.Cell.Curve() {
			x := -math.Log10(1 - q.Fraction)
			s.Line = append(s.Line, plot.Point{X: x, Y: q.MS})
			last = max(last, x)
		}
		if len(s.Line) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	for _, percent := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
		if x := -math.Log10(1 - percent/100); x <= last+1e-9 {
			c.XTicks = append(c.XTicks, plot.Tick{At: x, Label: fmt.Sprintf("%g", percent)})
		}
	}
	c.Description = fmt.Sprintf("Latency in %s at each percentile, one curve for each arm. The tables give p50, p90 and p99.", p.TimeUnit())
	return c
}

// stepTicks are the steps from least spinners on, evenly spaced in the order they ran.
func stepTicks(p *bench.Pooled, least int) []plot.Tick {
	var out []plot.Tick
	for i, cell := range p.Arms[0].Cells {
		if cell.Background >= least {
			out = append(out, plot.Tick{At: float64(i), Label: cell.Label()})
		}
	}
	return out
}

// stepSeries draw one value of each step from least spinners on: pooled as lines, seeds as dots, invalid windows as
// crosses.
func stepSeries(p *bench.Pooled, least int, value func(*bench.Cell, bench.Figures) float64) []plot.Series {
	var out []plot.Series
	for i := range p.Arms {
		s := plot.Series{Label: p.Arms[i].Label, Class: bench.ArmClass(p.Arms[i].Label)}
		for j := range p.Arms[i].Cells {
			cell := &p.Arms[i].Cells[j]
			if cell.Background >= least {
				addCell(&s, cell, float64(j), value)
			}
		}
		out = append(out, s)
	}
	return out
}

func addCell(s *plot.Series, cell *bench.Cell, x float64, value func(*bench.Cell, bench.Figures) float64) {
	add := func(to []plot.Point, f bench.Figures) []plot.Point {
		if v := value(cell, f); !math.IsNaN(v) && !math.IsInf(v, 0) {
			to = append(to, plot.Point{X: x, Y: v})
		}
		return to
	}
	if cell.Figures != nil {
		s.Line = add(s.Line, *cell.Figures)
	}
	for _, w := range cell.Windows {
		if !w.Valid {
			s.Invalid = add(s.Invalid, bench.FiguresOf(w.Step))
		} else if len(cell.Windows) > 1 {
			s.Runs = add(s.Runs, bench.FiguresOf(w.Step))
		}
	}
}

// describe says in words what a chart over steps shows.
func describe(c plot.Chart, unit string) string {
	labels := map[float64]string{}
	for _, t := range c.XTicks {
		labels[t.At] = t.Label
	}
	var parts []string
	for _, s := range c.Series {
		var values []string
		for _, point := range s.Line {
			values = append(values, fmt.Sprintf("%s at %s", bench.FormatMS(point.Y), labels[point.X]))
		}
		parts = append(parts, s.Label+": "+strings.Join(values, ", "))
	}
	return "Value (" + unit + ") at each number of spinners. " + strings.Join(parts, ". ") + "."
}
