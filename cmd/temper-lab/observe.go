package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/observed"
	"temper.dev/temper/lab/run"
)

func newObserveCommand() *cobra.Command {
	var machine machineFlags
	var flags planFlags
	var out string
	cmd := &cobra.Command{
		Use:   "observe SCENARIO",
		Short: "Watch a ladder from outside: does background run where critical work waits, and does it get the rest",
		Long: `Run a ladder as 'lab ladder' does, with 'temper observe' watching each window by the kernel's own events, under
any scheduler and by nobody's counters. Watching costs, so the latencies are not kept; measure those with
'lab ladder'. Equal input gives an equal record.` + describePlan(),
		Example: `  temper-lab observe chain --arms cpuidle,temper --steps 1,8 --seconds 1
  temper-lab observe memcached --load 0.8 --bursty --json record.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := flags.plan(cmd, args[0])
			if err != nil {
				return err
			}
			if err := checkOutput(out); err != nil {
				return err
			}
			show := newLadderProgress(cmd.ErrOrStderr())
			o := machine.options()
			o.Notify = func(what string) { show.update(run.Progress{Stage: what}) }
			l, err := run.Open(cmd.Context(), o, p.Arms)
			if err != nil {
				return err
			}
			r, err := l.Observed(cmd.Context(), p, show.update)
			show.End()
			if err != nil {
				return err
			}
			if out != "" {
				if err := bench.WriteJSON(out, r); err != nil {
					return err
				}
			}
			return observed.Write(cmd.OutOrStdout(), r)
		},
	}
	scenarioArg(cmd)
	machine.register(cmd)
	flags.register(cmd)
	cmd.Flags().Int64Var(&flags.Seed, "seed", 1, "of the arrivals and the order of arms; a repetition is another seed")
	cmd.Flags().StringVar(&out, "json", "", "also write the record to this file")
	return cmd
}
