package main

import (
	"strings"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

// planFlags are those of a ladder, whether it runs once or under many seeds.
type planFlags struct {
	plan.Plan
	upDown bool
}

const defaultLoad = 0.5

func (f *planFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Arms, "arms", []string{"eevdf", "cpuidle", "temper"}, "ways to schedule, in any order: the seed shuffles them; the list is above")
	flags.IntSliceVar(&f.Steps, "steps", []int{0, 1, 2, 4, 8}, "background workers of each step, in this order; web: 0, one and two a CPU")
	flags.IntVar(&f.CPUs, "cpus", 2, "application CPUs; the load generator has one more, beyond four half as many more")
	flags.Float64Var(&f.Seconds, "seconds", 4, "length of a window, in guest seconds")
	flags.Float64Var(&f.WarmUp, "warm-up", 6, "load before the first window, in guest seconds; not counted")
	flags.Float64Var(&f.Load, "load", defaultLoad, "memcached, web: fraction of its measured saturation; web at 1: always two requests a CPU under way")
	flags.BoolVar(&f.Bursty, "bursty", false, "let the service idle 60 % of each 100 ms")
	flags.BoolVar(&f.upDown, "up-down", false, "climb the steps, then descend them")
	flags.IntVar(&f.Quantum, "quantum", plan.DefaultQuantum, "time in which every virtual CPU has a turn, in us of guest time")
	_ = cmd.RegisterFlagCompletionFunc("arms", completeArms)
}

// plan is what the flags ask for, checked.
func (f *planFlags) plan(cmd *cobra.Command, scenario string) (plan.Plan, error) {
	p := f.Plan
	p.Scenario = scenario
	if scenario == plan.Chain && !cmd.Flags().Changed("load") {
		p.Load = 0
	}
	if !cmd.Flags().Changed("steps") {
		p.Steps = run.DefaultSteps(scenario, p.CPUs)
	}
	if f.upDown {
		p.Steps = run.UpDown(p.Steps)
	}
	return p, run.CheckPlan(p)
}

// scenarioArg accepts and completes one scenario.
func scenarioArg(cmd *cobra.Command) {
	cmd.Args = cli.Args("SCENARIO")
	for _, s := range run.Scenarios {
		cmd.ValidArgs = append(cmd.ValidArgs, s.Name+"\t"+s.Summary)
	}
}

// describePlan ends the help text of a command that takes a plan.
func describePlan() string {
	var b strings.Builder
	b.WriteString("\n\nScenarios:\n")
	for _, s := range run.Scenarios {
		b.WriteString("  " + pad(s.Name, 16) + s.Summary + "\n")
	}
	b.WriteString("\nArms:\n")
	for _, a := range plan.Arms {
		b.WriteString("  " + pad(a.Name, 16) + a.Summary + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(1, width-len(s)))
}

// completeArms completes the last name of a comma-separated list.
func completeArms(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	done := typed[:strings.LastIndex(typed, ",")+1]
	var names []string
	for _, a := range plan.Arms {
		names = append(names, done+a.Name+"\t"+a.Summary)
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
