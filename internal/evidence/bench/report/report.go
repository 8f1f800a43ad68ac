// Package report shows what records add up to as one HTML page or one picture.
package report

import (
	_ "embed"
	"html/template"
	"io"
	"math"

	"temper.dev/temper/internal/base/plot"
	"temper.dev/temper/internal/evidence/bench"
)

// WorstStep asks for the latency curve at the step where Temper's p99 is farthest above the floor.
const WorstStep = -1

//go:embed report.html
var page string

//go:embed report.css
var style string

var tmpl = template.Must(template.New("report").Parse(page))

// Style is what a page of records looks like, its plots included, in either colour scheme.
func Style() template.CSS {
	return template.CSS(":root{" + plot.LightColours + "}\n@media (prefers-color-scheme:dark){:root{" + plot.DarkColours + "}}\n" + plot.CSS + style)
}

// WriteHTML writes the summary as one HTML page that loads nothing. curveStep is the number of spinners at which to
// show the latency curves, or WorstStep.
func WriteHTML(w io.Writer, s *bench.Summary, curveStep int) error {
	v, err := newView(s, curveStep)
	if err != nil {
		return err
	}
	return tmpl.Execute(w, v)
}

// WriteSVG writes a pool's picture: p99 and background work against the steps.
func WriteSVG(w io.Writer, p *bench.Pooled) error {
	charts := []plot.Chart{latencyChart(p, "p99", bench.P99), workChart(p, "work")}
	return plot.WriteFile(w, p.Plan()+": p99 latency and background work", charts[0].Description+" "+charts[1].Description, charts...)
}

// pickStep is the step that WorstStep stands for: Temper's worst, or the last one where Temper did not run.
func pickStep(p *bench.Pooled, asked int) int {
	if asked != WorstStep {
		return asked
	}
	step, worst := 0, math.Inf(-1)
	for _, r := range p.Rows() {
		ratio := p.OverFloor(r.Cell, bench.P99)
		if bench.IsOurs(r.Arm.Label) && ratio != nil && ratio.Value > worst {
			step, worst = r.Cell.Background, ratio.Value
		}
	}
	if math.IsInf(worst, -1) {
		cells := p.Arms[0].Cells
		return cells[len(cells)-1].Background
	}
	return step
}
