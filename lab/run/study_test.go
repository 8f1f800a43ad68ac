package run

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

// recordOf is what a lab with these hashes would have made of the plan.
func recordOf(t *testing.T, l *Lab, p plan.Plan) bench.Record {
	t.Helper()
	r := newTestRun(t, shuffle(p).Arms...)
	for _, arm := range r.plan.Arms {
		for _, step := range p.Steps {
			if err := r.handle(window(arm, step)); err != nil {
				t.Fatal(err)
			}
		}
	}
	record := r.record
	record.Schema, record.Scenario, record.Load, record.CPUs, record.Seed = bench.Schema, p.Scenario, p.Load, p.CPUs, p.Seed
	record.Seconds, record.WarmUp, record.Hashes, record.Machine.QuantumUS = p.Seconds, p.WarmUp, l.Hashes, p.Quantum
	return record
}

func TestStudySkipsItsOwnRecordsAndRefusesOthers(t *testing.T) {
	l := &Lab{Hashes: bench.Hashes{Kernel: "k", Guest: "g"}}
	s := Study{Plan: goodPlan(), Seeds: []int64{1, 2, 3}, Out: t.TempDir(), Jobs: 1}
	record := recordOf(t, l, s.at(2))
	path := filepath.Join(s.Out, RecordName(s.at(2)))
	if err := bench.WriteJSON(path, record); err != nil {
		t.Fatal(err)
	}
	missing, err := s.missingSeeds(l.Hashes, func(int64, Progress) {})
	if err != nil || !slices.Equal(missing, []int64{1, 3}) {
		t.Fatalf("got %v, %v", missing, err)
	}
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	for differs, spoil := range map[string]func(*bench.Record){
		"its hashes of guest differ":                                 func(r *bench.Record) { r.Hashes.Guest = "other" },
		"its hashes of kernel, scheduler (BPF object) differ":        func(r *bench.Record) { r.Hashes.Kernel, r.Hashes.BPF = "other", "b" },
		"its lengths of window, warm-up or quantum differ":           func(r *bench.Record) { r.Seconds = 9 },
		"its conditions (scenario, CPUs, load, bursty, seed) differ": func(r *bench.Record) { r.Load = 0.8 },
		"its arms or steps differ":                                   func(r *bench.Record) { r.Arms[0].Steps[0].Background = 9 },
		"record of another study: its arms or steps differ":          func(r *bench.Record) { r.Arms[0].Arm = "eevdf-full" },
	} {
		var r bench.Record
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		spoil(&r)
		if err := bench.WriteJSON(path, r); err != nil {
			t.Fatal(err)
		}
		if _, err := s.missingSeeds(l.Hashes, func(int64, Progress) {}); exit.StatusOf(err) != exit.Usage || !strings.Contains(err.Error(), differs) {
			t.Errorf("got %v, want %s", err, differs)
		}
	}
}
