package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/spf13/cobra"

	"temper.dev/temper/internal/cli"
	"temper.dev/temper/internal/exit"
	"temper.dev/temper/internal/host"
	"temper.dev/temper/internal/status"
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
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			families, err := metricsOf(host.Root(root)).Gather()
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

func metricsOf(root host.Root) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(status.Collector{Look: func() (*status.Status, error) { return status.Now(root) }})
	return registry
}

// serveMetrics answers scrapes until ctx ends.
func serveMetrics(ctx context.Context, address string, root host.Root) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return exit.New(exit.Usage, "name another with --metrics, such as localhost:9770", "metrics cannot be served at %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metricsOf(root), promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() { _ = server.Serve(listener) }() // it ends with ctx, and so does the agent
	return nil
}
