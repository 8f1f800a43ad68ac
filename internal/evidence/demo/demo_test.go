package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

func TestPlansAreOnesThatTheLabTakes(t *testing.T) {
	for _, p := range Plans(2, 1, 1) {
		if err := run.CheckPlan(p); err != nil {
			t.Error(err)
		}
	}
}

func TestTheFirstFailureEndsAllAndIsReported(t *testing.T) {
	failed := errors.New("the guest failed")
	d := Demo{Plans: Plans(2, 1, 1), Parallel: true, Measure: func(ctx context.Context, p plan.Plan, _ func(run.Progress)) (bench.Record, error) {
		if p.Scenario == plan.Memcached {
			return bench.Record{}, failed
		}
		<-ctx.Done()
		return bench.Record{}, exit.New(exit.Interrupted, "", "interrupted")
	}}
	if _, err := d.Run(t.Context(), func(Progress) {}); err != failed {
		t.Errorf("got %v", err)
	}
}

func TestOneAfterTheOther(t *testing.T) {
	var order []string
	d := Demo{Plans: Plans(2, 1, 1), Measure: func(_ context.Context, p plan.Plan, progress func(run.Progress)) (bench.Record, error) {
		order = append(order, p.Scenario)
		progress(run.Progress{Done: 1, Total: 1})
		return bench.Record{Scenario: p.Scenario}, nil
	}}
	records, err := d.Run(t.Context(), func(Progress) {})
	if err != nil || len(records) != 2 || records[1].Scenario != "memcached" || strings.Join(order, " ") != "chain memcached" {
		t.Errorf("got %v, %v, %v", order, records, err)
	}
}

func TestLeft(t *testing.T) {
	ladders := []run.Progress{{Left: time.Minute}, {Left: 3 * time.Minute}}
	if got := (Progress{Ladders: ladders, parallel: true}).Left(); got != 3*time.Minute {
		t.Errorf("in parallel: %v", got)
	}
	// The first is a minute from its end after one minute; the second will take two.
	if got := (Progress{Ladders: []run.Progress{{Left: time.Minute}, {}}, elapsed: time.Minute}).Left(); got != 3*time.Minute {
		t.Errorf("one after the other: %v", got)
	}
}

func pools(t *testing.T, change func(*bench.Record)) []*bench.Pooled {
	t.Helper()
	var records []bench.Record
	for _, scenario := range []string{"chain", "memcached"} {
		r := benchtest.Record(t, scenario, 1, "eevdf", "cpuidle", "temper")
		change(&r)
		records = append(records, r)
	}
	pools, err := bench.PoolAll(records)
	if err != nil {
		t.Fatal(err)
	}
	return pools
}

func TestTableAndVerdict(t *testing.T) {
	var b bytes.Buffer
	for _, p := range pools(t, func(r *bench.Record) {
		r.Arms[1].Steps[2].Valid, r.Arms[1].Steps[2].InvalidReason = r.Scenario != "chain", "no request was answered"
	}) {
		if err := WriteTable(&b, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteLegend(&b); err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "demo.txt", b.String()+Verdict(pools(t, func(*bench.Record) {}))+"\n")
}

func TestVerdictTakesSidesByTheFigures(t *testing.T) {
	double := func(arm string) func(*bench.Record) {
		return func(r *bench.Record) {
			for i := range r.Arms {
				for j := range r.Arms[i].Steps {
					s := &r.Arms[i].Steps[j]
					if s.Histogram = ""; r.Arms[i].Arm == arm && s.Background > 0 {
						s.P99 *= 2
						s.BackgroundWork *= 2
					}
				}
			}
		}
	}
	for arm, want := range map[string]string{
		"temper":  "Temper gives up no background work, but does not keep the tail lowest everywhere. ",
		"cpuidle": "Temper keeps the tail lowest, but gives up background work. ",
	} {
		if got := Verdict(pools(t, double(arm))); !strings.HasPrefix(got, want) {
			t.Errorf("%s twice as much: got %q", arm, got)
		}
	}
	got := Verdict(pools(t, func(r *bench.Record) { r.Arms[0].Steps[1].Valid = false }))
	if got != "No verdict: chain, 2 CPUs has a window of eevdf that does not count." {
		t.Errorf("got %q", got)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckFolder(filepath.Join(file, "out")); exit.StatusOf(err) != exit.Usage {
		t.Errorf("a file in the way: %v", err)
	}
	if err := CheckFolder("/proc/out"); exit.StatusOf(err) != exit.Usage { // whose mode says that root may write to it
		t.Errorf("a folder of the kernel's: %v", err)
	}
	out := filepath.Join(dir, "a/b")
	if err := CheckFolder(out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(out)); !os.IsNotExist(err) {
		t.Error("a check made the folder")
	}
	r := benchtest.Record(t, "chain", 1, "eevdf", "cpuidle", "temper")
	s, err := bench.NewSummary([]bench.Record{r}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(out, []bench.Record{r}, s); err != nil {
		t.Fatal(err)
	}
	if _, err := bench.ReadRecord(filepath.Join(out, "chain.json")); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile(filepath.Join(out, ReportName))
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(page)), "</html>") {
		t.Errorf("the report ends with %q, %v", page[max(0, len(page)-20):], err)
	}
}
