package run

import (
	"context"

	"temper.dev/temper/lab/observed"
	"temper.dev/temper/lab/plan"
)

// Observed runs a plan as Ladder does, with each window watched from outside.
func (l *Lab) Observed(ctx context.Context, p plan.Plan, progress func(Progress)) (observed.Record, error) {
	p.Observe = true
	var windows []plan.Window
	var wake float64
	ladder, err := l.ladder(ctx, p, progress, func(e plan.Event) {
		switch {
		case e.Ready != nil:
			wake = e.Ready.PreemptingWakeMS
		case e.Window != nil:
			windows = append(windows, *e.Window)
		}
	})
	if err != nil {
		return observed.Record{}, err
	}
	r := observed.New(ladder, wake)
	for _, w := range windows {
		r.Add(w)
	}
	return r, nil
}
