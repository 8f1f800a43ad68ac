package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

func goodPlan() plan.Plan {
	return plan.Plan{
		Scenario: plan.Memcached, Arms: []string{"eevdf", "cpuidle", "temper"}, Steps: []int{0, 4},
		Seed: 1, CPUs: 2, Seconds: 1, WarmUp: 1, Load: 0.5, Quantum: 50,
	}
}

func TestShuffleFollowsTheSeed(t *testing.T) {
	p := goodPlan()
	orders := map[string]bool{}
	for p.Seed = range int64(50) {
		a, b := Shuffle(p), Shuffle(p)
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

func TestUpDown(t *testing.T) {
	if got := UpDown([]int{0, 1, 4}); !slices.Equal(got, []int{0, 1, 4, 1, 0}) {
		t.Errorf("got %v", got)
	}
}

func TestDefaultSteps(t *testing.T) {
	for scenario, want := range map[string][]int{plan.Web: {0, 4, 8}, plan.Chain: {0, 1, 2, 4, 8}} {
		if got := DefaultSteps(scenario, 4); !slices.Equal(got, want) {
			t.Errorf("%s: got %v", scenario, got)
		}
	}
}

func TestWebTakesEveryArmOfTheStudy(t *testing.T) {
	p := goodPlan()
	p.Scenario, p.CPUs, p.Arms = plan.Web, 4, []string{"weight-1", "weight-10", "weight-100", "weight-1000", "weight-10000", "sched-idle", "cpuidle", "fifo", "eevdf", "temper"}
	for _, p.Load = range []float64{0.5, 1} {
		if err := CheckPlan(p); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckPlan(t *testing.T) {
	if err := CheckPlan(goodPlan()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*plan.Plan){
		"scenario": func(p *plan.Plan) { p.Scenario = "nginx" },
		"arm":      func(p *plan.Plan) { p.Arms[1] = "cfs" },
		"no arms":  func(p *plan.Plan) { p.Arms = nil },
		"steps":    func(p *plan.Plan) { p.Steps = nil },
		"negative": func(p *plan.Plan) { p.Steps[0] = -1 },
		"seconds":  func(p *plan.Plan) { p.Seconds = 0 },
		"load":     func(p *plan.Plan) { p.Load = 50 },
		"web":      func(p *plan.Plan) { p.Scenario, p.Load = plan.Web, 0 },
		"no rest":  func(p *plan.Plan) { p.Scenario, p.Load, p.Bursty = plan.Web, 1, true },
		"policy":   func(p *plan.Plan) { p.Arms[1] = "fifo" },
		"chain":    func(p *plan.Plan) { p.Scenario = plan.Chain },
		"quantum":  func(p *plan.Plan) { p.Quantum = 60_000 },
		"cpus":     func(p *plan.Plan) { p.CPUs = 24 },
	} {
		p := goodPlan()
		spoil(&p)
		if err := CheckPlan(p); exit.StatusOf(err) != exit.Usage {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func window(arm string, background int) plan.Event {
	return plan.Event{Kind: "window", Window: &plan.Window{Arm: arm, Preempt: "full", Step: bench.Step{Background: background, Valid: true}}}
}

func newTestRun(arms ...string) *ladderRun {
	p := goodPlan()
	p.Arms = arms
	return &ladderRun{plan: p, eta: newEstimate(machines[0].hostFactor(), p), progress: func(Progress) {}}
}

func TestWindowsBecomeARecord(t *testing.T) {
	r := newTestRun("eevdf", "eevdf") // stock against stock
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
		r := newTestRun("eevdf")
		var err error
		for _, e := range events {
			err = r.handle(e)
		}
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), dataFile)
	ended := make(chan struct{})
	close(ended)
	for _, c := range []struct {
		name, text, kinds, fails string
		done                     bool
	}{
		{name: "done", text: `{"kind":"log","text":"a"}` + "\n" + `{"kind":"done"}` + "\n" + `{"kind":"log"}` + "\n", kinds: "log done", done: true},
		{name: "died", text: `{"kind":"log"}` + "\n" + `{"kind":"do`, kinds: "log"},
		{name: "failed", text: `{"kind":"error","text":"no memory"}` + "\n", fails: "the guest failed: no memory"},
		{name: "garbage", text: "Oops: 0002\n", fails: "no event"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var kinds []string
			done, err := follow(path, ended, func(e plan.Event) error { kinds = append(kinds, e.Kind); return nil })
			if done != c.done || strings.Join(kinds, " ") != c.kinds {
				t.Errorf("done %v, events %q", done, kinds)
			}
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLineReaderJoinsPieces(t *testing.T) {
	r := lineReader{}
	var got []string
	for _, chunk := range []string{"a", "b\nc", "", "\n\nd"} {
		for _, line := range r.add([]byte(chunk)) {
			got = append(got, string(line))
		}
	}
	if !slices.Equal(got, []string{"ab", "c", ""}) {
		t.Errorf("got %q", got)
	}
}

// recordOf is what a lab with these hashes would have made of the plan.
func recordOf(t *testing.T, l *Lab, p plan.Plan) bench.Record {
	t.Helper()
	r := newTestRun(Shuffle(p).Arms...)
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
	missing, err := l.missingSeeds(s, func(int64, Progress) {})
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
		if _, err := l.missingSeeds(s, func(int64, Progress) {}); exit.StatusOf(err) != exit.Usage || !strings.Contains(err.Error(), differs) {
			t.Errorf("got %v, want %s", err, differs)
		}
	}
}

func TestCheckCosts(t *testing.T) {
	good := plan.Costs{Arms: []string{"eevdf", "temper"}, CPUs: 2, Rounds: 1}
	if err := CheckCosts(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []plan.Costs{
		{Arms: []string{"cfs"}, CPUs: 2, Rounds: 1}, {Arms: []string{"fifo"}, CPUs: 2, Rounds: 1}, {Arms: []string{"sched-idle"}, CPUs: 2, Rounds: 1}, {CPUs: 2, Rounds: 1},
		{Arms: good.Arms, CPUs: 1, Rounds: 1}, {Arms: good.Arms, CPUs: 99, Rounds: 1}, {Arms: good.Arms, CPUs: 2},
	} {
		if err := CheckCosts(bad); exit.StatusOf(err) != exit.Usage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestCheckLimits(t *testing.T) {
	good := plan.Limits{Service: plan.GoService, Arms: []string{"stock", "temper"}, Steps: []int{0}, Clients: 8, CPUs: 4, Limit: 1.5, Load: 0.8, Seconds: 6, WarmUp: 1}
	if err := CheckLimits(good); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*plan.Limits){
		"an unknown service":           func(p *plan.Limits) { p.Service = "oracle" },
		"an unknown arm":               func(p *plan.Limits) { p.Arms = []string{"eevdf"} },
		"no arms":                      func(p *plan.Limits) { p.Arms = nil },
		"no steps":                     func(p *plan.Limits) { p.Steps = nil },
		"a negative step":              func(p *plan.Limits) { p.Steps = []int{-1} },
		"no clients":                   func(p *plan.Limits) { p.Clients = 0 },
		"a limit beyond all CPUs":      func(p *plan.Limits) { p.Limit = 4.5 },
		"no limit":                     func(p *plan.Limits) { p.Limit = 0 },
		"load beyond the limit":        func(p *plan.Limits) { p.Load = 1.1 },
		"windows of ten periods":       func(p *plan.Limits) { p.Seconds = 1 },
		"parts of sysbench's seconds":  func(p *plan.Limits) { p.Service, p.Seconds = plan.MariaDB, 1.5 },
		"no warm-up":                   func(p *plan.Limits) { p.WarmUp = 0 },
		"more CPUs than machines have": func(p *plan.Limits) { p.CPUs, p.Limit = 99, 1 },
	} {
		bad := good
		change(&bad)
		if err := CheckLimits(bad); exit.StatusOf(err) != exit.Usage {
			t.Errorf("%s: %v", what, err)
		}
	}
}
