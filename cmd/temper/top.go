package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/nodetop"
	"temper.dev/temper/internal/node/status"
)

func newTopCommand() *cobra.Command {
	var root string
	var options nodetop.Options
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what tiers and cgroups use, and how long they wait",
		Long: `Show what this node's tiers use, how soon background work lets go of CPUs, and what each cgroup that has a tier uses.
On a terminal the tables are drawn anew each time, as much of them as fits; elsewhere they follow each other. It works
without an agent too, but then nobody knows which cgroups there are.

  SYSTEM, CRITICAL, STANDARD, BACKGROUND, CPU
               CPUs in use. With a unit (s): seconds since the scheduler was attached, or since a cgroup was made, until
               there is a second look. Without Temper's scheduler it is that of the cgroups; -: nobody counts it
  WAIT P99     within which 99 % of the waits of critical tasks for a CPU ended
  GAPS/S       how often each second background work had a CPU that a higher tier came to want; it was let go within
               OVERRUN P99 in 99 % of them
  LOANS/S      how often each second a loan of a CPU of the fence ended; it was given back within BACK P99
  WAITING      share of the time in which some task of the cgroup waited for a CPU

Percentiles are of the time since the look before; of the first, and of --once, they are since the scheduler was attached.
They are upper bounds: edges of buckets that are powers of two. On a cluster's node a cgroup goes by its pod's name;
'kubectl temper top' shows the nodes of a cluster.`,
		Example: `  sudo temper top
  sudo temper top --sort wait --every 5s
  sudo temper top --json | jq -c '.nodes[0].tiers[] | {tier, p99: .wait.p99_us}'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Check(); err != nil {
				return err
			}
			if os.Geteuid() != 0 {
				return exit.New(exit.NotRoot, "use sudo", "counters are for root only")
			}
			name, err := os.Hostname()
			if err != nil {
				return err
			}
			return options.Show(cmd, nodetop.Table{Tiers: true, Own: true}, func(context.Context) *nodetop.Round { return status.Top(host.Root(root), name) })
		},
	}
	options.AddFlags(cmd)
	addRootFlag(cmd, &root)
	return cmd
}
