package main

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/exit"
	"temper.dev/temper/internal/observe"
	"temper.dev/temper/lab/chaos"
)

func TestChaosTableNamesEachViolation(t *testing.T) {
	good := chaos.Report{
		Seed: 1, Workers: 30, Operations: map[string]int{"move": 3, "kill": 2}, StalledMS: map[string]float64{"/a": 12, "/b": 250.4},
		Observed: []observe.Report{{MaxUS: 80}, {MaxUS: 120}},
	}
	bad := chaos.Report{Seed: 2, Violations: []string{"one is lost", "another is lost"}}
	var out strings.Builder
	if err := writeChaos(&out, []chaos.Report{good}); err != nil {
		t.Errorf("without a violation: %v", err)
	}
	row := strings.Join(strings.Fields(strings.Split(out.String(), "\n")[1]), " ")
	if row != "1 5 30 250 120 0" || !strings.HasSuffix(out.String(), "1 seeds, no violation\n") {
		t.Error(out.String())
	}
	out.Reset()
	err := writeChaos(&out, []chaos.Report{good, bad})
	if exit.StatusOf(err) != exit.Failed || !strings.Contains(err.Error(), "1 of 2 seeds") {
		t.Errorf("with a violation: %v", err)
	}
	for _, line := range []string{"seed 2: one is lost\n", "seed 2: another is lost\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing in\n%s", line, out.String())
		}
	}
}
