package run

import (
	"slices"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

func goodPlan() plan.Plan {
	return plan.Plan{
		Scenario: plan.Memcached, Arms: []string{"eevdf", "cpuidle", "temper"}, Steps: []int{0, 4},
		Seed: 1, CPUs: 2, Seconds: 1, WarmUp: 1, Load: 0.5, Quantum: 50,
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

func TestWorkloadsAreChecked(t *testing.T) {
	p := goodPlan()
	p.Scenario, p.Workload = "mine", &plan.Workload{}
	if err := CheckPlan(p); err != nil {
		t.Error(err)
	}
	if p.Load = 0; CheckPlan(p) == nil {
		t.Error("neither a load nor a rate, and nothing was said")
	}
	if p.Workload.Rate = 10; CheckPlan(p) != nil {
		t.Error(CheckPlan(p))
	}
}
