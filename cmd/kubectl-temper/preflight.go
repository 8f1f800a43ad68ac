package main

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/cluster/preflight"
)

// patience is for how long the API server may take for one answer where --request-timeout does not say.
const patience = 30 * time.Second

func newPreflightCommand() *cobra.Command {
	flags := clusterFlags()
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Say what would be in the way of Temper in a cluster, before it is installed",
		Long: `Say of a cluster what should be known before Temper is installed there. It reads, and changes nothing:

  - which nodes would have an agent, and what it could enforce there by the kernel's version; equal nodes are one line
  - what would refuse the agents' pods in their namespace (--namespace, else temper-system): Pod Security, LimitRanges,
    ResourceQuotas, admission webhooks that fail closed
  - what is there already: objects with the names of Temper's, an API server that is too old, agents of Koordinator and
    Katalyst
  - how many pods of each namespace would be in which tier, by the chart's default policy and the TierPolicies there are
  - which pods would be in background that others depend on: those of DaemonSets and of namespaces kube-*, those that
    answer for webhooks, API services and conversions, and those that lead (Lease)

With --all it names each node and each pod, and the rule that decides; --json always does. What the user may not read is
"unknown", never well. An installation with the chart's default values is looked at. Each answer of the API server may take
30 s, or what --request-timeout says.

Exit status: 0 where nothing fails, whatever it warns of; 1 where something fails or is unknown, or the cluster does not
answer; 2 for wrong flags; 9 where no kubeconfig names a cluster.`,
		Example: `  kubectl temper preflight
  kubectl temper preflight -n kube-system --all
  kubectl temper preflight --json | jq -r '.pods[] | select(.depends) | .name'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := restConfig(flags)
			if err != nil {
				return err
			}
			config.Timeout = cmp.Or(config.Timeout, patience)
			report, err := preflight.Run(cmd.Context(), config, cmp.Or(*flags.Namespace, preflight.Namespace))
			if err != nil {
				return err
			}
			if !asJSON {
				report.Write(cmd.OutOrStdout(), all)
				return report.Verdict.Err()
			}
			encoder := json.NewEncoder(cmd.OutOrStdout())
			encoder.SetIndent("", "  ")
			if err := encoder.Encode(report); err != nil {
				return err
			}
			return report.Verdict.Err()
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "name each node and each pod, and the rule that decides")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	flags.AddFlags(cmd.Flags())
	return cmd
}
