package main

import (
	"fmt"
	"io"
	"strings"

	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/internal/evidence/demo"
	"temper.dev/temper/lab/plan"
)

// demoProgress shows several ladders in one line.
type demoProgress struct {
	live.Line
	plans []plan.Plan
}

func newDemoProgress(w io.Writer, plans []plan.Plan) *demoProgress {
	return &demoProgress{live.NewLine(w), plans}
}

func (d *demoProgress) update(p demo.Progress) {
	if d.Terminal || p.Ladders[p.Current].Window != nil || p.Ladders[p.Current].Done == 0 {
		d.Show(d.describe(p))
	}
}

func (d *demoProgress) describe(p demo.Progress) string {
	var parts []string
	for i, l := range p.Ladders {
		text := d.plans[i].Scenario + " "
		switch {
		case l.Total == 0:
			text += "waits"
		case l.Done == 0:
			text += l.Stage
		default:
			text += fmt.Sprintf("%d of %d windows", l.Done, l.Total)
		}
		parts = append(parts, text)
	}
	if left := p.Left(); left > 0 {
		parts = append(parts, "about "+live.Clock(left)+" left")
	}
	if w := p.Ladders[p.Current].Window; w != nil {
		parts = append(parts, fmt.Sprintf("%s, %s, %d in the background: %s",
			d.plans[p.Current].Scenario, w.Arm, w.Step.Background, describeLatency(w)))
	}
	return strings.Join(parts, " · ")
}
