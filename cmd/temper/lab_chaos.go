package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/bench"
	"temper.dev/temper/internal/exit"
	"temper.dev/temper/lab"
	"temper.dev/temper/lab/chaos"
	"temper.dev/temper/lab/plan"
)

func newLabChaosCommand() *cobra.Command {
	var machine machineFlags
	var seeds int
	var first int64
	var jsonFile string
	o := lab.ChaosOptions{}
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Attack the scheduler in a guest, and check that its promises hold",
		Long: `Attack the scheduler, one guest a seed: workers that compute, sleep, yield, fork, call exec, wake each
other and fight for locks come and go in all tiers, and are killed, stopped, frozen, traced, moved,
reniced and bound to CPUs; cgroups come and go, weights, CPU sets and tiers change, loader and agent are
killed, CPUs are unplugged.

Checked are: the kernel does not throw the scheduler out and has nothing to complain about; nobody stalls
for 20 s, whatever is ahead of them; whoever is killed is dead within 5 s; background does not run on for
10 ms while others wait, by the kernel's own tracepoints; and at the end nobody is lost, the scheduler is
attached, and its books are even. Times are the guest's.

On the deterministic machine a seed does the same each time. --fast uses several host threads, and is
several times as fast: then the seed says what is done, but not how it interleaves; the bounds in time
are four times as long, and what the tracepoints would say means nothing.

--soak does nothing of that: all CPUs have critical work that never sleeps, beside 64 background workers,
for as long as asked. The same is checked; and on the deterministic machine, that background has no more
than 0.1 % of the node in user mode.`,
		Example: `  temper lab chaos --seeds 20
  temper lab chaos --first-seed 17 --seeds 1 --json seed17.json
  temper lab chaos --seeds 200 --cpus 6 --operations 2000
  temper lab chaos --seeds 1 --soak 30m --fast`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for i := range seeds {
				o.Seeds = append(o.Seeds, first+int64(i))
			}
			if err := o.Check(); err != nil {
				return err
			}
			line := newProgressLine(cmd.ErrOrStderr())
			options := machine.options()
			options.Notify = line.show
			l, err := lab.Open(cmd.Context(), options, []string{plan.Temper})
			if err != nil {
				return err
			}
			reports, err := attackAll(cmd, l, o, line)
			if err != nil {
				return err
			}
			if jsonFile != "" {
				if err := bench.WriteJSON(jsonFile, reports); err != nil {
					return err
				}
			}
			return writeChaos(cmd.OutOrStdout(), reports)
		},
	}
	machine.register(cmd)
	cmd.Flags().IntVar(&seeds, "seeds", 20, "how many seeds to run")
	cmd.Flags().Int64Var(&first, "first-seed", 1, "the first of them")
	cmd.Flags().IntVar(&o.Operations, "operations", 300, "how much is done, a seed")
	cmd.Flags().DurationVar(&o.Soak, "soak", 0, "instead of an attack: critical work on all CPUs for so long, beside 64 background workers")
	cmd.Flags().IntVar(&o.CPUs, "cpus", 3, "virtual CPUs; 3, 6, 12 or 24 on the deterministic machine")
	cmd.Flags().BoolVar(&o.Fast, "fast", false, "several host threads, and the host's clock: nothing happens twice")
	cmd.Flags().IntVar(&o.Jobs, "jobs", 2, "guests to run at a time")
	cmd.Flags().StringVar(&o.Consoles, "console", "", "folder for what the kernels of seeds with violations say")
	cmd.Flags().StringVar(&jsonFile, "json", "", "also write the reports to this file")
	_ = cmd.MarkFlagDirname("console")
	return cmd
}

// attackAll runs all seeds, and returns their reports in the order of seeds.
func attackAll(cmd *cobra.Command, l *lab.Lab, o lab.ChaosOptions, line progressLine) (reports []chaos.Report, err error) {
	var lock sync.Mutex
	start, broken := time.Now(), 0
	line.show(fmt.Sprintf("attacking %s · 0 of %d seeds", l.Kernel.Release, len(o.Seeds)))
	err = l.Chaos(cmd.Context(), o, func(r chaos.Report) {
		lock.Lock()
		defer lock.Unlock()
		reports = append(reports, r)
		if len(r.Violations) > 0 {
			broken++
		}
		left := time.Since(start) / time.Duration(len(reports)) * time.Duration(len(o.Seeds)-len(reports))
		line.show(fmt.Sprintf("seed %d · %d of %d seeds · %d with violations · about %s left", r.Seed, len(reports), len(o.Seeds), broken, clock(left)))
	})
	line.end()
	if err != nil {
		return nil, interrupted()
	}
	slices.SortFunc(reports, func(a, b chaos.Report) int { return cmp.Compare(a.Seed, b.Seed) })
	return reports, nil
}

// writeChaos shows the reports; violations are an error.
func writeChaos(w io.Writer, reports []chaos.Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "seed\toperations\tworkers\tlongest stall ms\tlongest overrun us\tviolations\t")
	broken := []int64{}
	for _, r := range reports {
		overrun := "–" // nobody observed
		if len(r.Observed) > 0 {
			overrun = fmt.Sprintf("%.0f", r.LongestOverrun())
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%.0f\t%s\t%d\t\n", r.Seed, r.Total(), r.Workers, r.LongestStall(), overrun, len(r.Violations))
		if len(r.Violations) > 0 {
			broken = append(broken, r.Seed)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "longest stall: of a worker that wanted to go on. longest overrun: background ran on while others waited.")
	for _, r := range reports {
		if r.LostGuests > 0 {
			fmt.Fprintf(w, "seed %d: the emulator lost %d guests before this one, by a fault of its own\n", r.Seed, r.LostGuests)
		}
		if r.BackgroundUser > 0 {
			fmt.Fprintf(w, "seed %d: beside %.0f s of critical work on all CPUs, background had %.3f %% of the node in user mode\n", r.Seed, r.Seconds, 100*r.BackgroundUser)
		}
		for _, v := range r.Violations {
			fmt.Fprintf(w, "seed %d: %s\n", r.Seed, v)
		}
	}
	if len(broken) > 0 {
		return exit.New(exit.Failed, fmt.Sprintf("repeat one with --first-seed %d --seeds 1", broken[0]),
			"%d of %d seeds have violations: %v", len(broken), len(reports), broken)
	}
	_, err := fmt.Fprintf(w, "%d seeds, no violation\n", len(reports))
	return err
}
