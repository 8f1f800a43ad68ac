package page

import (
	"fmt"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/plot"
	"temper.dev/temper/pathfence/bench/record"
)

// charts are those of what bars speak of: how long the healthy path's requests take once the other path's downstream is
// disturbed, arm by arm.
func charts(r record.Record) (list []plot.Chart) {
	for _, d := range record.Isolation {
		if c := onset(r, d); len(c.Series) > 0 {
			list = append(list, c)
		}
	}
	return list
}

func onset(r record.Record, disturbance string) plot.Chart {
	c := plot.Chart{
		Title:  disturbance,
		XLabel: "seconds after the onset", YLabel: "healthy path: mean latency, ms", FromZero: true,
	}
	add := func(arm, disturbance string) {
		if line := r.Onset(arm, disturbance, record.Innocent); len(line) > 0 {
			s := plot.Series{Label: arm, Class: class(arm, len(c.Series)), Smooth: true}
			for i, ms := range line {
				s.Line = append(s.Line, plot.Point{X: record.OnsetAt(i).Seconds(), Y: ms})
			}
			c.Series = append(c.Series, s)
		}
	}
	arms := r.Arms(disturbance)
	slices.SortStableFunc(arms, func(a, b string) int { return ours(b) - ours(a) })
	for _, arm := range arms {
		add(arm, disturbance)
	}
	if len(c.Series) > 0 {
		add(record.Alone, record.Calm(disturbance))
		c.XTicks = seconds(len(c.Series[0].Line))
		c.Description = describe(c)
	}
	return c
}

// ours says whether an arm is the fence itself, which has the first of all looks.
func ours(arm string) int {
	if arm == record.Fence {
		return 1
	}
	return 0
}

// class is an arm's look: the fence's own, or one of the others in turn.
func class(arm string, place int) int {
	if ours(arm) == 1 {
		return 0
	}
	return 1 + (place+plot.Classes-2)%(plot.Classes-1)
}

func seconds(points int) (ticks []plot.Tick) {
	const apart = 0.5
	for at := 0.0; at <= float64(points)*record.Step.Seconds()+1e-9; at += apart {
		ticks = append(ticks, plot.Tick{At: at, Label: fmt.Sprintf("%g", at)})
	}
	return ticks
}

// describe says in words what each arm's requests take on average over all that is drawn.
func describe(c plot.Chart) string {
	var parts []string
	for _, s := range c.Series {
		sum := 0.0
		for _, p := range s.Line {
			sum += p.Y
		}
		parts = append(parts, fmt.Sprintf("%s: %.3g ms", s.Label, sum/float64(len(s.Line))))
	}
	return "Mean latency of the healthy path's requests; a request that was refused or not answered counts as the client's patience. Over all that is drawn: " + strings.Join(parts, ", ") + "."
}
