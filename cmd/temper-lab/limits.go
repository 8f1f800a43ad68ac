package main

import (
	"strings"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/limits"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

func newLimitsCommand() *cobra.Command {
	var machine machineFlags
	var out string
	p := plan.Limits{Quantum: plan.DefaultQuantum}
	cmd := &cobra.Command{
		Use:   "limits SERVICE",
		Short: "Hold a service to a CPU limit: what it uses, what it gets done, and how late",
		Long: `Hold a service to a CPU limit under each arm, on the deterministic machine, beside background spinners. Each step has
two windows: a closed loop, for how much the service gets done and whether the limit is kept while it wants more;
and an open one at a fixed rate, for how late its answers are. What it uses is read from its cgroup's cpu.stat, which
the kernel keeps whoever schedules. Equal input gives an equal record.

Latencies are in guest time: compare them with each other, not with those of real hardware.` + describeLimits(),
		Example: `  temper-lab limits go --seconds 10 --seed 1
  temper-lab limits postgres --clients 16 --steps 0,4 --json record.json`,
		Args: cli.Args("SERVICE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Service = args[0]
			if err := run.CheckLimits(p); err != nil {
				return err
			}
			if err := checkOutput(out); err != nil {
				return err
			}
			show := newLadderProgress(cmd.ErrOrStderr())
			r, err := run.Limits(cmd.Context(), machine.options(), p, show.update)
			show.End()
			if err != nil {
				return err
			}
			if out != "" {
				if err := bench.WriteJSON(out, r); err != nil {
					return err
				}
			}
			return limits.Write(cmd.OutOrStdout(), r)
		},
	}
	for _, s := range run.LimitedServices {
		cmd.ValidArgs = append(cmd.ValidArgs, s.Name+"\t"+s.Summary)
	}
	machine.register(cmd)
	flags := cmd.Flags()
	var arms []string
	for _, a := range plan.LimitArms {
		arms = append(arms, a.Name)
	}
	flags.StringSliceVar(&p.Arms, "arms", arms, "ways to deal with the limit, in any order: the seed shuffles them; see above")
	flags.IntSliceVar(&p.Steps, "steps", []int{0, 4}, "background spinners of each step, in this order")
	flags.IntVar(&p.Clients, "clients", 8, "clients of the service, each with one request under way at most")
	flags.IntVar(&p.CPUs, "cpus", 4, "application CPUs")
	flags.Float64Var(&p.Limit, "limit", 1.5, "the service's limit, in CPUs; a period is 100 ms")
	flags.Float64Var(&p.Load, "load", 0.8, "of the open loop: fraction of what the stock kernel's limit lets through")
	flags.Float64Var(&p.Seconds, "seconds", 6, "length of a window, in guest seconds")
	flags.Float64Var(&p.WarmUp, "warm-up", 3, "load before each window, in guest seconds; not counted")
	flags.Int64Var(&p.Seed, "seed", 1, "of the arrivals and the order of arms; a repetition is another seed")
	flags.StringVar(&out, "json", "", "also write the record to this file")
	return cmd
}

// describeLimits ends the help text.
func describeLimits() string {
	var b strings.Builder
	b.WriteString("\n\nServices:\n")
	for _, s := range run.LimitedServices {
		b.WriteString("  " + pad(s.Name, 14) + s.Summary + "\n")
	}
	b.WriteString("\nArms:\n")
	for _, a := range plan.LimitArms {
		b.WriteString("  " + pad(a.Name, 14) + a.Summary + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
