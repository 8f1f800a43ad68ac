package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/chaos"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

func newChaosCommand() *cobra.Command {
	var machine machineFlags
	var seeds int
	var first int64
	var jsonFile string
	o := run.ChaosOptions{}
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
for as long as asked. The same is checked, but that nobody waits for a turn for 20 s, since a round of
background work takes many; and on the deterministic machine, that background has no more than 0.1 % of
the node in user mode.`,
		Example: `  temper-lab chaos --seeds 20
  temper-lab chaos --first-seed 17 --seeds 1 --json seed17.json
  temper-lab chaos --seeds 200 --cpus 6 --operations 2000
  temper-lab chaos --seeds 1 --soak 30m --fast`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for i := range seeds {
				o.Seeds = append(o.Seeds, first+int64(i))
			}
			return attack(cmd, machine.options(), o, jsonFile)
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
	cmd.Flags().StringVar(&jsonFile, "json", "", "also write each report to this file as its seed ends, and leave out the seeds that it has")
	_ = cmd.MarkFlagDirname("console")
	return cmd
}

// attack attacks the seeds that jsonFile does not have, and prints the record of all.
func attack(cmd *cobra.Command, options run.Options, o run.ChaosOptions, jsonFile string) error {
	if err := o.Check(); err != nil {
		return err
	}
	line := live.NewLine(cmd.ErrOrStderr())
	options.Notify = line.Show
	l, err := run.Open(cmd.Context(), options, []string{plan.Temper})
	if err != nil {
		return err
	}
	record, err := recordedAttack(jsonFile, l.ChaosRecord(o))
	if err != nil {
		return err
	}
	if err := attackAll(cmd, l, o, line, &record, jsonFile); err != nil {
		return err
	}
	if err := chaos.Write(cmd.OutOrStdout(), record); err != nil {
		return err
	}
	if broken := record.Broken(); len(broken) > 0 {
		return exit.New(exit.Failed, fmt.Sprintf("repeat one with --first-seed %d --seeds 1", broken[0]),
			"%d of %d seeds have violations: %v", len(broken), len(record.Seeds), broken)
	}
	return nil
}

// recordedAttack is what the file has of this attack: nothing if it is not there, or no regular file.
func recordedAttack(path string, attack chaos.Record) (chaos.Record, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return attack, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return attack, err
	}
	var recorded chaos.Record
	if err := json.Unmarshal(text, &recorded); err != nil {
		return attack, exit.New(exit.Usage, "remove it, or name another file", "%s is no record of an attack: %w", path, err)
	}
	if field := recorded.Differs(attack); field != "" {
		return attack, exit.New(exit.Usage, "remove it, or name another file", "%s records another attack: its %s differ", path, field)
	}
	return recorded, nil
}

// attackAll attacks the seeds that are not recorded, and records each as it ends.
func attackAll(cmd *cobra.Command, l *run.Lab, o run.ChaosOptions, line live.Line, record *chaos.Record, path string) error {
	o.Seeds = slices.DeleteFunc(o.Seeds, record.Has)
	var lock sync.Mutex
	var failed error
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	start, done := time.Now(), 0
	line.Show(fmt.Sprintf("attacking %s · %d seeds recorded, %d to go", l.Kernel.Release, len(record.Seeds), len(o.Seeds)))
	err := l.Chaos(ctx, o, func(r chaos.Report) {
		lock.Lock()
		defer lock.Unlock()
		record.Add(r)
		done++
		line.End()
		for _, v := range r.Violations { // long before the last seed ends
			fmt.Fprintf(cmd.ErrOrStderr(), "seed %d: %s\n", r.Seed, v)
		}
		left := time.Since(start) / time.Duration(done) * time.Duration(len(o.Seeds)-done)
		line.Show(fmt.Sprintf("seed %d · %d of %d seeds · %d with violations · about %s left", r.Seed, done, len(o.Seeds), len(record.Broken()), live.Clock(left)))
		if path != "" && failed == nil {
			if failed = bench.WriteJSON(path, record); failed != nil {
				cancel()
			}
		}
	})
	line.End()
	switch {
	case failed != nil:
		return failed
	case err != nil && path != "":
		return exit.New(exit.Interrupted, "run the same command again to go on", "interrupted; %s has the seeds that have ended", path)
	case err != nil:
		return cli.Interrupted()
	}
	return nil
}
