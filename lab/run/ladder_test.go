package run

import (
	"fmt"
	"slices"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/plan"
)

func TestShuffleFollowsTheSeed(t *testing.T) {
	p := goodPlan()
	orders := map[string]bool{}
	for p.Seed = range int64(50) {
		a, b := shuffle(p), shuffle(p)
		if !slices.Equal(a.Arms, b.Arms) {
			t.Fatalf("seed %d gives two orders", p.Seed)
		}
		orders[fmt.Sprint(a.Arms)] = true
	}
	if len(orders) != 6 {
		t.Errorf("50 seeds give %d of 6 orders", len(orders))
	}
	if !slices.Equal(p.Arms, goodPlan().Arms) {
		t.Error("the caller's arms were shuffled")
	}
}

func window(arm string, background int) plan.Event {
	return plan.Event{Kind: "window", Window: &plan.Window{Arm: arm, Preempt: "full", Step: bench.Step{Background: background, Valid: true}}}
}

func newTestRun(t *testing.T, arms ...string) *ladderRun {
	t.Helper()
	p := goodPlan()
	p.Arms = arms
	size, err := machine.ForLadder(p.CPUs)
	if err != nil {
		t.Fatal(err)
	}
	return &ladderRun{plan: p, eta: newEstimate(size.HostFactor(), p), progress: func(Progress) {}}
}

func TestWindowsBecomeARecord(t *testing.T) {
	r := newTestRun(t, "eevdf", "eevdf") // stock against stock
	for _, e := range []plan.Event{
		{Kind: "ready", Ready: &plan.Ready{Kernel: "6.18", RateRPS: 7, CPURates: []float64{2, 3}, CPURatesAlone: []float64{4, 5}}},
		window("eevdf", 0), window("eevdf", 4), window("eevdf", 0), window("eevdf", 4), {Kind: "done"},
	} {
		if err := r.handle(e); err != nil {
			t.Fatal(err)
		}
	}
	if r.record.Kernel != "6.18" || r.record.RateRPS != 7 || len(r.record.Arms) != 2 || len(r.record.Arms[1].Steps) != 2 {
		t.Errorf("got %+v", r.record)
	}
	if !slices.Equal(r.record.CPURates, []float64{2, 3}) || !slices.Equal(r.record.CPURatesAlone, []float64{4, 5}) {
		t.Errorf("speeds %v, alone %v", r.record.CPURates, r.record.CPURatesAlone)
	}
}

func TestWindowsOutOfPlanAreRefused(t *testing.T) {
	for name, events := range map[string][]plan.Event{
		"another arm":  {window("cpuidle", 0)},
		"another step": {window("eevdf", 4)},
		"too few":      {window("eevdf", 0), {Kind: "done"}},
		"too many":     {window("eevdf", 0), window("eevdf", 4), window("eevdf", 0)},
	} {
		r := newTestRun(t, "eevdf")
		var err error
		for _, e := range events {
			err = r.handle(e)
		}
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
