// Command temper-controller keeps overcommit in a cluster as its CapacityPolicy says, and pauses it where nodes are not fit.
package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"temper.dev/temper"
	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/capacity/controller"
)

func main() { cli.Main(newRootCommand()) }

// options are the command's flags.
type options struct {
	controller.Options
	kubeconfig string
	level      slog.Level
}

func newRootCommand() *cobra.Command {
	var o options
	cmd := cli.Prepare(&cobra.Command{
		Use:   "temper-controller",
		Short: "Keep overcommit in a cluster as its CapacityPolicy says",
		Long: `The controller of a cluster with overcommit. It keeps the admission policies that lower CPU requests up to date as the
CapacityPolicy, TierPolicies and autoscalers change, and ends them when the CapacityPolicy goes. A guard looks at what the
nodes' agents report. While too few nodes are fit, new pods keep their requests. Nodes offer the extended resource
temper.dev/overcommit while they are enforced, and lowered pods come to no other. It evicts and restarts nothing.

It needs Kubernetes 1.36. Several can run: a Lease says which one works. It ends where it loses the Lease.

Exit status: 0 where it was asked to end; 1 where the API server does not answer, or the Lease is lost; 2 for wrong flags; 9
where nothing says how to reach the API server.`,
		Example: `  temper-controller --probes :9772                                             # in a pod, with NAMESPACE from the downward API
  temper-controller --namespace temper-system --kubeconfig controller.conf    # elsewhere`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, o) },
	})
	cli.HasVersion(cmd, temper.Identity())
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the API server (default: as pods do)")
	flags.StringVar(&o.Namespace, "namespace", os.Getenv("NAMESPACE"), "`NAME` of the namespace of the Lease (default: $NAMESPACE)")
	flags.Lookup("namespace").DefValue = ""
	flags.StringVar(&o.Probes, "probes", "", "`ADDRESS` to answer a kubelet's probes at, as /healthz and /readyz (default: none)")
	flags.StringVar(&o.Metrics, "metrics", "", "`ADDRESS` to serve metrics for Prometheus at, as /metrics (default: none)")
	flags.DurationVar(&o.Every, "every", 15*time.Second, "`DURATION` between two looks at the nodes: 100ms to 1m")
	flags.TextVar(&o.level, "log-level", slog.LevelInfo, "least `LEVEL` that is logged: debug, info, warn or error")
	return cmd
}

func run(cmd *cobra.Command, o options) error {
	if o.Namespace == "" {
		return exit.New(exit.Usage, "give --namespace, or set NAMESPACE from metadata.namespace", "nobody says in which namespace the Lease is")
	}
	if o.Every < 100*time.Millisecond || o.Every > time.Minute {
		return exit.New(exit.Usage, "use one from 100ms to 1m", "--every %v is too short or too long", o.Every)
	}
	// Without --kubeconfig, this is how pods reach it.
	cluster, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return exit.New(exit.Config, "run it in a pod, or give --kubeconfig", "nothing says how to reach the API server: %w", err)
	}
	o.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: o.level}))
	log.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	klog.SetSlogLogger(o.Log)
	if err := controller.Run(cmd.Context(), cluster, o.Options); err != nil {
		return exit.New(exit.Failed, "", "%w", err)
	}
	return nil
}
