package run

import (
	"fmt"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/plan"
)

// Scenarios are the workloads, with a line for those who choose.
var Scenarios = []struct{ Name, Summary string }{
	{plan.Chain, "10 services in a row, 0.4 ms of computing each, at a fixed rate"},
	{plan.Memcached, "memcached from Debian, at a fraction of its measured saturation"},
	{plan.Web, "a server that computes about 3 ms a request, at a fraction of its measured saturation, beside image resizing"},
}

// Below the least, the emulator would do little but change turns. Above the most, wake-ups would wait for them.
const (
	minQuantum = 2
	maxQuantum = 54_000
)

// CheckPlan refuses what would fail in the guest, or measure something else than was meant.
func CheckPlan(p plan.Plan) error {
	usage := func(cure, format string, args ...any) error { return exit.New(exit.Usage, cure, format, args...) }
	if p.Workload == nil && !slices.Contains(scenarioNames(), p.Scenario) {
		return usage("choose one of "+strings.Join(scenarioNames(), ", "), "no scenario %q", p.Scenario)
	}
	for _, name := range p.Arms {
		arm, ok := plan.FindArm(name)
		if !ok {
			return usage("choose from "+strings.Join(armNames(), ", "), "no arm %q", name)
		}
		if arm.ServicePolicy != "" && p.Scenario == plan.Memcached {
			return usage("leave it out", "arm %s cannot change the policy of memcached, which runs from before the first arm to the last", name)
		}
	}
	for _, step := range p.Steps {
		if step < 0 {
			return usage("", "a step is a number of background workers, not %d", step)
		}
	}
	switch {
	case len(p.Arms) == 0:
		return usage("choose from "+strings.Join(armNames(), ", "), "no arms")
	case len(p.Steps) == 0:
		return usage("", "no steps")
	case p.Seconds <= 0 || p.WarmUp <= 0:
		return usage("", "windows and warm-up need a length above 0")
	case p.Scenario != plan.Chain && (p.Workload == nil || p.Workload.Rate == 0) && (p.Load <= 0 || p.Load > 1):
		return usage("", "load is a fraction of saturation above 0 and up to 1, not %v", p.Load)
	case p.Scenario == plan.Chain && p.Load != 0:
		return usage("leave --load out", "the rate of scenario chain is fixed")
	case p.Scenario == plan.Web && p.Load == 1 && p.Bursty:
		return usage("leave --bursty out", "a service that never rests has no bursts")
	case p.Quantum < minQuantum || p.Quantum > maxQuantum:
		return usage("", "the quantum is %d to %d us, not %d", minQuantum, maxQuantum, p.Quantum)
	}
	_, err := machine.ForLadder(p.CPUs)
	return err
}

func scenarioNames() []string {
	var names []string
	for _, s := range Scenarios {
		names = append(names, s.Name)
	}
	return names
}

func armNames() []string {
	var names []string
	for _, a := range plan.Arms {
		names = append(names, a.Name)
	}
	return names
}

// DefaultSteps are those of a scenario for which nobody asks for others.
func DefaultSteps(scenario string, cpus int) []int {
	if scenario == plan.Web {
		return []int{0, cpus, 2 * cpus}
	}
	return []int{0, 1, 2, 4, 8}
}

// UpDown is a ladder climbed and then descended: 0,1,4 becomes 0,1,4,1,0.
func UpDown(steps []int) []int {
	down := slices.Clone(steps)
	slices.Reverse(down)
	return slices.Concat(steps, down[min(1, len(down)):])
}

// RecordName is the name of a plan's record in a study's folder.
func RecordName(p plan.Plan) string {
	name := fmt.Sprintf("%s-%dcpu", p.Scenario, p.CPUs)
	if p.Load != 0 {
		name += fmt.Sprintf("-load%g", p.Load*100)
	}
	if p.Bursty {
		name += "-bursty"
	}
	return fmt.Sprintf("%s-seed%d.json", name, p.Seed)
}
