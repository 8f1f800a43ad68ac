package main

import (
	"github.com/prometheus/common/expfmt"
	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/status"
)

func newMetricsCommand() *cobra.Command {
	var root string
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Print this node's figures for Prometheus",
		Long: `Print once what 'temper agent --metrics' serves: what 'temper status' shows, with all buckets of the histograms, in
Prometheus' text format. node_exporter's textfile collector takes it where no agent runs. Counters need root.`,
		Example: `  temper metrics
  temper metrics >temper.prom.new && mv temper.prom.new /var/lib/node_exporter/temper.prom`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			families, err := status.Registry(host.Root(root)).Gather()
			if err != nil {
				return err
			}
			for _, family := range families {
				if _, err := expfmt.MetricFamilyToText(cmd.OutOrStdout(), family); err != nil {
					return err
				}
			}
			return nil
		},
	}
	addRootFlag(cmd, &root)
	return cmd
}
