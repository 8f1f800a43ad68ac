package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/cost"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

func newCostCommand() *cobra.Command {
	var machine machineFlags
	var out string
	p := plan.Costs{Quantum: plan.DefaultQuantum}
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Count the instructions of a switch, a wake-up and a preemption",
		Long: `Count what scheduling costs under each arm, on the deterministic machine, with nothing else to do: the
instructions that a CPU executes in the time of one switch, one wake-up, one preemption, one message.
Each figure is the median of nine batches. Equal input gives equal figures.`,
		Example: `  temper-lab cost --arms eevdf,temper
  temper-lab cost --arms eevdf,temper,lavd --cpus 4 --json cost.json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := run.CheckCosts(p); err != nil {
				return err
			}
			if err := checkOutput(out); err != nil {
				return err
			}
			r, err := countCosts(cmd, machine.options(), p)
			if err != nil {
				return err
			}
			if out != "" {
				if err := bench.WriteJSON(out, r); err != nil {
					return err
				}
			}
			return cost.Write(cmd.OutOrStdout(), r)
		},
	}
	machine.register(cmd)
	cmd.Flags().StringSliceVar(&p.Arms, "arms", []string{"eevdf", "temper"}, "arms; figures are compared with those of the first")
	cmd.Flags().IntVar(&p.CPUs, "cpus", 2, "application CPUs")
	cmd.Flags().IntVar(&p.Rounds, "rounds", 500, "rounds of a batch")
	cmd.Flags().StringVar(&out, "json", "", "also write the record to this file")
	return cmd
}

func countCosts(cmd *cobra.Command, options run.Options, p plan.Costs) (cost.Record, error) {
	line := live.NewLine(cmd.ErrOrStderr())
	defer line.End()
	options.Notify = line.Show
	show := func(done int) {
		if done < len(p.Arms) {
			line.Show(fmt.Sprintf("arm %d of %d · %s", done+1, len(p.Arms), p.Arms[done]))
		}
	}
	show(0)
	r, err := run.Costs(cmd.Context(), options, p, show)
	if cmd.Context().Err() != nil {
		return cost.Record{}, cli.Interrupted()
	}
	return r, err
}
