package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/cluster/fleet"
)

func newStatusCommand() *cobra.Command {
	flags := clusterFlags()
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [NODE...]",
		Short: "Say what is in force on the cluster's nodes, and why",
		Long: `Say of each node what its agent reports: the rung, whether the tiers are enforced and else why not, the policy, and how
many pods are critical and background. With one node it says all: conditions, tiers with their pods, problems.

An agent reports at each change, and once a minute. What is older than three minutes is shown as unknown. A node that a
TierPolicy selects, and from which no agent reports, is listed with what is known of its agent's pod: that takes the right
to list nodes, TierPolicies, pods and daemonsets.`,
		Example: `  kubectl temper status
  kubectl temper status node-7
  kubectl temper status --json | jq '.[] | select(.rung != "scx") | .name'`,
		ValidArgsFunction: nodeNames(flags),
		RunE: func(cmd *cobra.Command, names []string) error {
			cluster, _, err := connect(flags)
			if err != nil {
				return err
			}
			now := time.Now()
			nodes, err := nodesOf(cmd.Context(), cluster, names, now, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				encoder := json.NewEncoder(out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(nodes)
			case len(nodes) == 0:
				fmt.Fprintln(cmd.ErrOrStderr(), noReports)
			case len(names) == 1:
				fleet.WriteOne(out, nodes[0], now)
			default:
				fleet.Write(out, nodes, now)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	flags.AddFlags(cmd.Flags())
	return cmd
}
