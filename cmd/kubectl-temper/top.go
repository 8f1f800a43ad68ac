package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/cluster/fleet"
	"temper.dev/temper/internal/node/nodetop"
)

func newTopCommand() *cobra.Command {
	flags := clusterFlags()
	var options nodetop.Options
	cmd := &cobra.Command{
		Use:   "top [NODE...]",
		Short: "Watch what tiers and pods use, and how long they wait",
		Long: `Show of each node what its tiers use and how soon background work lets go of CPUs, and of each pod what it uses. On a
terminal the tables are drawn anew each time, as much of them as fits; elsewhere they follow each other.

Agents that serve metrics (metrics.address of the chart) are asked each time, through the API server: that takes the right
to list pods, and to get pods/proxy, in the agents' namespace. Where it cannot be, the figures are those of the node's last
report, which comes once a minute, and the last lines say why. In a large cluster, name nodes: each look asks all of them.

  SYSTEM, CRITICAL, STANDARD, BACKGROUND, CPU
               CPUs in use. With a unit (s): seconds since the scheduler was attached, or since a pod's start, until there
               is a second look. Of a node without Temper's scheduler it is that of its pods
  WAIT P99     within which 99 % of the waits of critical tasks for a CPU ended
  GAPS/S       how often each second background work had a CPU that a higher tier came to want; it was let go within
               OVERRUN P99 in 99 % of them
  LOANS/S      how often each second a loan of a CPU of the node's fence ended; it was given back within BACK P99
  WAITING      share of the time in which some task of the pod waited for a CPU

With one node named there is a line for each tier, too. Percentiles are of the time since the look before, where the agent
is asked; of the first look, of --once and of reports they are since the scheduler was attached. They are upper bounds:
edges of buckets that are powers of two.`,
		Example: `  kubectl temper top
  kubectl temper top node-7 --sort wait
  kubectl temper top --every 5s --json | jq -c '.nodes[] | {node, waits: [.tiers[] | {tier, p99: .wait.p99_us}]}'`,
		ValidArgsFunction: nodeNames(flags),
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := options.Check(); err != nil {
				return err
			}
			source, err := topSource(cmd, flags, names)
			if err != nil {
				return err
			}
			return options.Show(cmd, nodetop.Table{Tiers: len(names) == 1}, source.Round)
		},
	}
	options.AddFlags(cmd)
	flags.AddFlags(cmd.Flags())
	return cmd
}

// topSource is the cluster to look at; it fails where there is nothing to look at, or nobody answers.
func topSource(cmd *cobra.Command, flags *genericclioptions.ConfigFlags, names []string) (*fleet.TopSource, error) {
	cluster, _, err := connect(flags)
	if err != nil {
		return nil, err
	}
	nodes, err := nodesOf(cmd.Context(), cluster, names, time.Now(), cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), noReports)
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, exit.New(exit.Config, "", "%w", err)
	}
	config.QPS = -1 // all agents at a time; the API server knows how to bound that
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &fleet.TopSource{Cluster: cluster, Clients: clients, Nodes: names}, nil
}
