package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/demo"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

// demoFlags are those of 'temper-lab demo'.
type demoFlags struct {
	machine machineFlags
	out     string
	native  bool
	cpus    int
	scale   float64
	seed    int64
}

func newDemoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show in 15 minutes what Temper does to two services",
		Long: `Show what Temper does to two services: a chain of ten services, and memcached at half of its
saturation, each while background work rises from 0 to 8 threads, under the stock scheduler as the
kernel boots, the best stock setting, and Temper.

It runs in the lab, a deterministic virtual machine: it needs no root, changes nothing on this host,
and gives everyone the same figures. It takes 12 to 15 minutes on 2 CPUs. With --native it runs on
this host itself, as root: its kernel must have sched_ext, and nothing else should be running.

Ends with a table for each service and a verdict, and writes a report and the records to a folder.`,
		Example: `  temper-lab demo
  temper-lab demo --out /tmp/demo --scale 0.2
  sudo temper-lab demo --native --cpus 3`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.machine.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "temper-demo", "`FOLDER` for report and records")
	flags.BoolVar(&f.native, "native", false, "run on this host instead of the lab")
	flags.IntVar(&f.cpus, "cpus", 2, "application CPUs; the load generator has one more, beyond four half as many more")
	flags.Float64Var(&f.scale, "scale", 1, "length of the windows over the usual; shorter ones are noisier")
	flags.Int64Var(&f.seed, "seed", 1, "of the arrivals and the order of arms")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

func (f *demoFlags) run(ctx context.Context, out, progress io.Writer) error {
	d := demo.Demo{Plans: demo.Plans(f.cpus, f.scale, f.seed), Parallel: !f.native}
	for _, p := range d.Plans {
		if err := run.CheckPlan(p); err != nil {
			return err
		}
	}
	if err := demo.CheckFolder(f.out); err != nil {
		return err
	}
	show := newDemoProgress(progress, d.Plans)
	var err error
	if d.Measure, err = f.machineFor(ctx, show); err != nil {
		return err
	}
	records, err := d.Run(ctx, show.update)
	show.End()
	if err != nil {
		return err
	}
	summary, err := bench.NewSummary(records, nil)
	if err != nil {
		return err
	}
	if err := demo.Write(f.out, records, summary); err != nil {
		return err
	}
	return f.tell(out, summary.Pools)
}

// machineFor gets what measures ready: the lab, or this host.
func (f *demoFlags) machineFor(ctx context.Context, show *demoProgress) (func(context.Context, plan.Plan, func(run.Progress)) (bench.Record, error), error) {
	o := f.machine.options()
	if f.native {
		host, err := run.OpenNative("/", o.Assets)
		if err != nil {
			return nil, err
		}
		return host.Ladder, nil
	}
	o.Notify = show.Show
	l, err := run.Open(ctx, o, []string{plan.Temper})
	if err != nil && ctx.Err() != nil {
		err = exit.New(exit.Interrupted, "", "interrupted before anything was measured")
	}
	if err != nil {
		return nil, err
	}
	return l.Ladder, nil
}

func (f *demoFlags) tell(out io.Writer, pools []*bench.Pooled) error {
	for _, p := range pools {
		if err := demo.WriteTable(out, p); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if err := demo.WriteLegend(out); err != nil {
		return err
	}
	if f.scale < 1 {
		fmt.Fprintf(out, "\nThe windows were shorter than usual (--scale %g): what follows may be chance.\n", f.scale)
	}
	_, err := fmt.Fprintf(out, "\n%s\n\nReport: %s (records beside it; 'temper-lab bench report' reads them)\n",
		demo.Verdict(pools), filepath.Join(f.out, demo.ReportName))
	return err
}
