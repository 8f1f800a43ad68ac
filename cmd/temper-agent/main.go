// Command temper-agent is the agent of a cluster's node: what 'temper agent' does, for the node's pods.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"temper.dev/temper"
	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/cluster/nodemetrics"
	"temper.dev/temper/internal/cluster/nodepods"
	"temper.dev/temper/internal/cluster/nri"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/status"
)

func main() { cli.Main(newRootCommand()) }

// options are the command's flags.
type options struct {
	node, root, config, loader, metrics, ready, kubeconfig, daemonSet, nri string
	heartbeat                                                              heartbeat
	system                                                                 cgroups
	safeMode                                                               bool
	level                                                                  slog.Level
}

func newRootCommand() *cobra.Command {
	o := options{heartbeat: heartbeat(time.Minute)}
	cmd := cli.Prepare(&cobra.Command{
		Use:   "temper-agent",
		Short: "Keep the tiers of a Kubernetes node's pods in force",
		Long: `The agent of a cluster's node. It starts and supervises scx_temper, watches the pods of its own node, and gives
their cgroups the tiers that the TierPolicy of the node says, as they come and go. What it does, and what stands in
its way, is in the TemperNode of the node's name. The node's own configuration, where there is one, adds tiers for
cgroups and units that are no pods.

Where the API server is away, what it has said last holds. Signals are those of 'temper agent', whose place it takes:
SIGTERM ends it and detaches the scheduler; SIGUSR1 leaves the scheduler attached for the next agent. With --daemonset
SIGTERM does the one or the other, as that DaemonSet has another agent come or not.`,
		Example: `  temper-agent --daemonset temper-system/temper-agent   # in a pod, with NODE_NAME from the downward API
  temper-agent --node "$(hostname)" --kubeconfig agent.conf  # on the node itself`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, o) },
	})
	cli.HasVersion(cmd, temper.Identity())
	flags := cmd.Flags()
	flags.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "`NAME` of this node in the cluster (default: $NODE_NAME)")
	flags.Lookup("node").DefValue = ""
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the API server (default: as pods do)")
	flags.StringVar(&o.config, "config", config.DefaultPath, "the node's own configuration `FILE`, if there is one")
	flags.StringVar(&o.loader, "loader", "", "`PATH` of scx_temper (default: next to temper-agent, else in PATH)")
	flags.StringVar(&o.metrics, "metrics", "", "`ADDRESS` to serve metrics for Prometheus at, as /metrics (default: none)")
	flags.StringVar(&o.ready, "ready", "", "`ADDRESS` to answer a kubelet's readiness probes at, as /readyz (default: none)")
	flags.StringVar(&o.daemonSet, "daemonset", "", "`NAMESPACE/NAME` of the DaemonSet whose pod this is (default: none)")
	flags.StringVar(&o.nri, "nri", "", "`SOCKET` at which the container runtime says when containers start (default: none)")
	flags.Var(&o.heartbeat, "heartbeat-timeout", "`DURATION` for which the scheduler waits for the next agent before it leaves by itself; 0: for ever")
	flags.Var(&o.system, "system-cgroup", "`CGROUP` whose tier is system, as system.slice's is; may be given more than once")
	flags.TextVar(&o.level, "log-level", slog.LevelInfo, "least `LEVEL` that is logged: debug, info, warn or error")
	flags.BoolVar(&o.safeMode, "safe-mode", false, "leave the node to the kernel's own scheduler")
	flags.StringVar(&o.root, "host-root", "/", "`DIR` where the node's file system is mounted")
	return cmd
}

func run(cmd *cobra.Command, o options) error {
	if os.Geteuid() != 0 {
		return exit.New(exit.NotRoot, "run it as root", "the agent must run as root")
	}
	if o.node == "" {
		return exit.New(exit.Usage, "give --node, or set NODE_NAME from spec.nodeName", "nobody says which node this is")
	}
	cluster, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR1)
	stderr := cmd.ErrOrStderr()
	words := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: o.level}))
	log.SetLogger(logr.Discard()) // what fails is told as a problem
	klog.SetSlogLogger(words)
	ctx, err := life(cmd.Context(), o, cluster, signals, words)
	if err != nil {
		return err
	}

	root := host.Root(o.root)
	own, err := agent.NewFileSource(root, o.config, agent.MayBeMissing, words)
	if err != nil {
		return err
	}
	given := nodepods.Given{Source: own, HeartbeatTimeout: time.Duration(o.heartbeat), SafeMode: o.safeMode, System: o.system}
	source, err := nodepods.New(ctx, root, given, cluster, o.node, words)
	if err != nil {
		return err
	}
	a, err := agent.NewWith(root, source, o.loader, words, stderr)
	if err != nil {
		return err
	}
	if o.metrics != "" {
		if err := nodemetrics.Serve(ctx, o.metrics, root, a.State); err != nil {
			return err
		}
	}
	kernel, err := release()
	if err != nil {
		return err
	}
	reporter, err := nodepods.NewReporter(source, cluster, kernel, func() (*status.Status, error) { return status.Beside(root, a.State) }, words)
	if err != nil {
		return err
	}
	a.OnState(reporter.Tell)
	if o.ready != "" {
		if err := nodepods.ServeReady(ctx, o.ready, reporter.Ready); err != nil {
			return err
		}
	}
	if o.nri != "" {
		listen(ctx, nri.New(root.Path(o.nri), a.SyncNow, words), source)
	}
	return runBoth(ctx, a, reporter, signals)
}

// listen has the runtime say when containers start, and the source know its process.
func listen(ctx context.Context, runtime *nri.Plugin, source *nodepods.Source) {
	source.RuntimeIs(runtime.PID)
	go runtime.Run(ctx)
}

// life is the agent's: until asked ends, unless another agent comes. Then the agent is told to hand over, as SIGUSR1 does.
func life(asked context.Context, o options, cluster *rest.Config, signals chan<- os.Signal, words *slog.Logger) (context.Context, error) {
	if o.daemonSet == "" {
		return asked, nil
	}
	successor, err := nodepods.NewSuccessor(cluster, o.daemonSet, o.node)
	if err != nil {
		return nil, exit.New(exit.Usage, "name it as in temper-system/temper-agent", "--daemonset: %w", err)
	}
	unasked := context.WithoutCancel(asked)
	ctx, end := context.WithCancel(unasked)
	go func() {
		<-asked.Done()
		comes, why := successor.Comes(unasked)
		words.Info("the agent was asked to end", "another comes", comes, "why", why)
		if comes {
			signals <- syscall.SIGUSR1
		} else {
			end()
		}
	}()
	return ctx, nil
}

// runBoth reports until the agent has ended, and then once more.
func runBoth(ctx context.Context, a *agent.Agent, reporter *nodepods.Reporter, signals <-chan os.Signal) error {
	reporting, stop := context.WithCancel(context.WithoutCancel(ctx))
	var reports sync.WaitGroup
	reports.Go(func() { reporter.Run(reporting) })
	err := a.Run(ctx, signals)
	stop()
	reports.Wait()
	return err
}

// connect says how the API server is reached.
func connect(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		cluster, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, exit.New(exit.Config, "", "--kubeconfig: %w", err)
		}
		return cluster, nil
	}
	cluster, err := rest.InClusterConfig()
	if err != nil {
		return nil, exit.New(exit.Config, "run it in a pod, or give --kubeconfig", "nothing says how to reach the API server: %w", err)
	}
	return cluster, nil
}

func release() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}
