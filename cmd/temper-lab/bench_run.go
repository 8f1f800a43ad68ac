package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/run"
	"temper.dev/temper/lab/workload"
)

func newBenchRunCommand() *cobra.Command {
	var machine machineFlags
	study := run.Study{}
	on := inLab
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Measure services of your own, as a file describes them, and report",
		Long: `Measure services of your own under each arm, while background work rises in steps, and report what that shows.

FILE is YAML. It names services, a client, and what to measure. A service is a program of this host, a folder, or a
package of Debian. Files travel by themselves: the loader and the shared libraries of each program come with it. Each
service has a cgroup of its own, with tier critical under Temper's arms, on the application CPUs. The client has CPUs
of its own. It asks in HTTP/1.1, as memcached's, Redis's or PostgreSQL's clients do, or it is any command that prints an
HDR histogram. Requests are due at times that do not depend on the answers, and latency counts from then. Background
work is spinners, or any command that runs over and over.

Each seed is one boot of the deterministic machine, and gives one record. With --on host it is a ladder on this host
instead, in real time, and as root: the services see the files that they would see in the lab, this host's processes and
devices, and a network of their own, which is loopback. Afterwards the host is as it was before. Its kernel needs
sched_ext, and nothing else should run.

A run can be interrupted: run again, it skips the seeds that are recorded. Where a service ends, or an arm's scheduler
does not load, the windows are marked, and the others count. docs/start/workload.md has every field.`,
		Example: `  temper-lab bench run lab/workloads/nginx.yaml
  temper-lab bench run lab/workloads/postgres.yaml
  temper-lab bench run lab/workloads/memcached-sysbench.yaml
  temper-lab bench run service.yaml --out records/service --jobs 2
  sudo temper-lab bench run service.yaml --on host
  temper-lab bench report nginx-records/*.json --html report.html`,
		Args: cli.Args("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runBench(cmd, args[0], on, machine.options(), study)
		},
	}
	machine.register(cmd)
	cmd.Flags().StringVar(&study.Out, "out", "", "folder for the records (default: the workload's name and -records)")
	cmd.Flags().IntVar(&study.Jobs, "jobs", 2, "guests to run at a time, one a seed; each keeps one host CPU busy")
	cmd.Flags().StringVar(&on, "on", inLab, "where to measure: lab or host")
	_ = cmd.MarkFlagDirname("out")
	_ = cmd.RegisterFlagCompletionFunc("on", cobra.FixedCompletions([]string{inLab, onHost}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runBench(cmd *cobra.Command, path, on string, options run.Options, study run.Study) error {
	file, err := workload.Read(path)
	if err != nil {
		return err
	}
	if err := checkPlace(cmd, on); err != nil {
		return err
	}
	if study.Jobs < 1 {
		return exit.New(exit.Usage, "", "jobs must be at least 1, not %d", study.Jobs)
	}
	if study.Out == "" {
		study.Out = file.Name + "-records"
	}
	study.Seeds = file.Seeds
	if err := measureWorkload(cmd, on, options, file, study); err != nil {
		return err
	}
	var records []string
	for _, seed := range file.Seeds {
		p := file.Plan(nil)
		p.Seed = seed
		records = append(records, filepath.Join(study.Out, run.RecordName(p)))
	}
	if err := new(benchReport).run(cmd.OutOrStdout(), records); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Records are in %s. A page of it: temper-lab bench report %s/*.json --html report.html\n", study.Out, study.Out)
	return err
}

// Where services are measured.
const (
	inLab  = "lab"
	onHost = "host"
)

// checkPlace refuses flags that say nothing of where it is measured.
func checkPlace(cmd *cobra.Command, on string) error {
	switch on {
	case inLab:
		return nil
	case onHost:
	default:
		return exit.New(exit.Usage, "choose from lab, host", "cannot measure on %q", on)
	}
	for _, flag := range []string{"kernel", "jobs"} {
		if cmd.Flags().Changed(flag) {
			return exit.New(exit.Usage, "leave it out", "--%s is about the lab's machines, and this host is not one", flag)
		}
	}
	return nil
}

// studier measures what has no record yet.
type studier interface {
	Study(context.Context, run.Study, func(seed int64, p run.Progress)) error
}

// measureWorkload runs what has no record yet. One seed shows its windows, several their number.
func measureWorkload(cmd *cobra.Command, on string, o run.Options, file *workload.File, study run.Study) error {
	single := newLadderProgress(cmd.ErrOrStderr())
	defer single.End()
	o.Notify = func(what string) { single.Show(what) }
	var ready studier
	var err error
	if on == onHost {
		ready, study.Plan, err = run.OpenNativeWorkload(cmd.Context(), o, file)
	} else {
		ready, study.Plan, err = run.OpenWorkload(cmd.Context(), o, file)
	}
	if err != nil {
		return err
	}
	if len(study.Seeds) == 1 {
		return ready.Study(cmd.Context(), study, func(_ int64, p run.Progress) { single.update(p) })
	}
	several := newStudyProgress(cmd.ErrOrStderr(), study)
	defer several.End()
	return ready.Study(cmd.Context(), study, several.update)
}
