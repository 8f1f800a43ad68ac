package observed

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/node/observe"
	"temper.dev/temper/lab/plan"
)

func window(arm string, spinners int, report observe.Report) plan.Window {
	return plan.Window{Arm: arm, Preempt: "lazy", Step: bench.Step{Background: spinners}, Observed: &report}
}

func TestWindowsGoToTheirArm(t *testing.T) {
	r := New(bench.Record{Scenario: plan.Chain, CPUs: 2, Seconds: 1}, 0.03)
	r.Add(window("eevdf", 0, observe.Report{HigherUS: 1000}))
	r.Add(window("eevdf", 8, observe.Report{Violations: 3, HigherUS: 1000, TotalUS: 20, ExcessUS: 12, BackgroundUS: 300, StrandedUS: 100, P999US: 9000}))
	r.Add(window("temper", 0, observe.Report{}))
	if len(r.Arms) != 2 || len(r.Arms[0].Steps) != 2 || len(r.Arms[1].Steps) != 1 || r.PreemptingWakeUS != 30 {
		t.Fatalf("%+v", r)
	}
	var text strings.Builder
	if err := Write(&text, r); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(text.String(), "\n")
	for i, want := range []string{
		"arm spinners times p50 us p99.9 us longest us % of critical beyond % harvest %",
		"eevdf 0 0 0 0 0 0.000 0.000 –",
		"eevdf 8 3 0 9000 0 2.000 1.200 75.00",
		"temper 0 0 0 0 0 0.000 0.000 –",
	} {
		if got := strings.Join(strings.Fields(rows[i]), " "); got != want {
			t.Errorf("row %d: got %q, want %q", i, got, want)
		}
	}
	if !strings.Contains(text.String(), "the 30 us that") {
		t.Error(text.String())
	}
}
