package demo

import (
	"fmt"
	"strings"

	"temper.dev/temper/internal/evidence/bench"
)

// Two arms are called equal within these, as an A/A study of the lab finds equal arms to differ.
const (
	equalTail = 1.02
	fullWork  = 0.97 // of the arm that does most: the bar for background work
)

// worst is what an arm comes to at its worst loaded step.
type worst struct {
	tail float64 // p99 over the floor
	work float64 // background work over the most
}

// Verdict says in a few sentences what the tables show.
func Verdict(pools []*bench.Pooled) string {
	lowest, full := true, true
	var parts []string
	for _, p := range pools {
		figures := map[string]worst{}
		for _, a := range ordered(p) {
			w, ok := worstOf(p, a)
			if !ok {
				return fmt.Sprintf("No verdict: %s has a window of %s that does not count.", p.Plan(), a.Label)
			}
			figures[a.Label] = w
		}
		ours, best, plain := figures[temper], figures[bestStock], figures[stock]
		lowest = lowest && ours.tail <= equalTail*min(best.tail, plain.tail)
		full = full && ours.work >= fullWork
		parts = append(parts, fmt.Sprintf(
			"With it, %s's p99 is at most %.2f times the floor (best stock setting %.2f, stock as it boots %.2f). At least %.0f %% of the most background work is done (%.0f %%, %.0f %%).",
			p.Conditions.Scenario, ours.tail, best.tail, plain.tail, 100*ours.work, 100*best.work, 100*plain.work))
	}
	return conclusion(lowest, full) + ". " + strings.Join(parts, " ")
}

func conclusion(lowest, full bool) string {
	switch {
	case lowest && full:
		return "Temper keeps the tail lowest and gives up no background work"
	case lowest:
		return "Temper keeps the tail lowest, but gives up background work"
	case full:
		return "Temper gives up no background work, but does not keep the tail lowest everywhere"
	}
	return "Temper neither keeps the tail lowest everywhere nor all of the background work"
}

func worstOf(p *bench.Pooled, a *bench.PoolArm) (w worst, ok bool) {
	w.work = 1
	for i := range a.Cells {
		c := &a.Cells[i]
		if c.Background == 0 {
			continue
		}
		tail, work := p.OverFloor(c, bench.P99), p.WorkShare(c)
		if tail == nil || work == nil {
			return w, false
		}
		w.tail, w.work = max(w.tail, tail.Value), min(w.work, work.Value)
	}
	return w, true
}
