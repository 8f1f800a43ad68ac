package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/internal/capacity/collect"
	"temper.dev/temper/internal/capacity/consolidate"
	"temper.dev/temper/internal/capacity/plan"
)

// consolidateFlags are what the commands of 'consolidate' are asked for.
type consolidateFlags struct {
	file       string
	nodes      []string
	search     time.Duration
	seed       uint64
	timing     consolidate.Timing
	namespace  string
	asJSON     bool
	yes        bool
	dryRun     bool
	kubernetes *genericclioptions.ConfigFlags
}

func newConsolidateCommand() *cobra.Command {
	f := &consolidateFlags{kubernetes: clusterFlags(), timing: consolidate.DefaultTiming}
	f.kubernetes.Namespace = nil // nodes have none
	cmd := cli.Group(&cobra.Command{
		Use:   "consolidate",
		Short: "Empty nodes that a cluster could do without (experimental)",
		Long: `Consolidate empties nodes whose pods have room on others, so that their machines can be deleted. Each plan is tried out with
kube-scheduler's own plugins first. Pods leave by the eviction API alone, one after another: PodDisruptionBudgets hold.

Emptied nodes stay cordoned until somebody deletes their machines, which Temper does not. Only nodes on which Temper is
enforced are emptied. Where Karpenter or the cluster-autoscaler removes nodes, nothing is carried out: lower requests by
'kubectl temper overcommit', and let it act.

  plan       reads, and changes nothing
  run        empties the nodes
  rollback   uncordons them again`,
	})
	planning := &cobra.Command{
		Use:   "plan",
		Short: "Say which nodes could be emptied, what that saves, and what keeps each other node",
		Long: `Say which nodes could be emptied, what that saves, and what keeps each other node. It reads, and changes nothing.

With --json it prints the plan as 'run --plan' takes it: who gives that file to 'run' approves these nodes and no others. A
plan's name follows from its nodes.

Exit status: 0 where a plan was made, also one that empties nothing; 1 where the cluster does not answer, or no plan was found
in time; 2 for wrong flags; 9 where no kubeconfig names a cluster.`,
		Example: `  kubectl temper consolidate plan
  kubectl temper consolidate plan --nodes node-3,node-7
  kubectl temper consolidate plan --json > plan.json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.plan(cmd) },
	}
	f.addSearchFlags(planning)
	planning.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	f.kubernetes.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand(planning, f.runCommand(), f.rollbackCommand())
	return cmd
}

func (f *consolidateFlags) addSearchFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.nodes, "nodes", nil, "the only nodes that may be emptied; none are named: any may")
	flags.DurationVar(&f.search, "for", 30*time.Second, "how long to search for a plan at most")
	flags.Uint64Var(&f.seed, "seed", 0, "first of the seeds of what kube-scheduler leaves to chance")
}

// connect is an executor of the cluster.
func (f *consolidateFlags) connect() (*consolidate.Executor, error) {
	config, err := restConfig(f.kubernetes)
	if err != nil {
		return nil, err
	}
	config.Timeout = cmp.Or(config.Timeout, patience)
	config.QPS, config.Burst = 50, 100
	cluster, err := client.New(config, client.Options{Scheme: collect.Scheme()})
	if err != nil {
		return nil, err
	}
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &consolidate.Executor{Cluster: cluster, Leases: leases, Namespace: f.namespace, Owner: owner(), Now: time.Now,
		Confirm: plan.Options{Seed: f.seed}, Timing: f.timing}, nil
}

// owner names this process, so that people know whom to ask.
func owner() string {
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return fmt.Sprintf("kubectl-temper/%s/%d/%s", machine, os.Getpid(), rand.String(5))
}

func (f *consolidateFlags) plan(cmd *cobra.Command) error {
	if err := f.checkSearch(); err != nil {
		return err
	}
	e, err := f.connect()
	if err != nil {
		return err
	}
	p, err := f.find(cmd, e)
	if err != nil {
		return err
	}
	if f.asJSON {
		return printJSON(cmd, p)
	}
	f.show(cmd.OutOrStdout(), p)
	return nil
}

func (f *consolidateFlags) checkSearch() error {
	if f.search <= 0 {
		return exit.New(exit.Usage, "use 30s", "--for %v leaves no time", f.search)
	}
	return nil
}

// find makes a plan of the cluster as it is.
func (f *consolidateFlags) find(cmd *cobra.Command, e *consolidate.Executor) (*consolidate.Plan, error) {
	ctx := cmd.Context()
	s, err := consolidate.Snapshot(ctx, e.Cluster, e.Now())
	if err != nil {
		return nil, err
	}
	for _, name := range f.nodes {
		if !slices.ContainsFunc(s.Nodes, func(n *corev1.Node) bool { return n.Name == name }) {
			return nil, exit.New(exit.Failed, "'kubectl get nodes' lists them", "there is no node %q", name)
		}
	}
	who, err := consolidate.RemovedBy(ctx, e.Cluster, s.Nodes)
	if err != nil {
		return nil, err
	}
	log := newProgress(cmd.ErrOrStderr())
	defer log.end()
	searching, stop := context.WithTimeout(ctx, f.search)
	defer stop()
	end := time.Now().Add(f.search)
	log.say(func() string { return "looking for a plan, at most " + live.Clock(max(0, time.Until(end))) + " left" })
	go log.keep(searching)
	found, err := plan.Make(searching, s.Snapshot, plan.Options{Seed: f.seed, Nodes: f.nodes})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case searching.Err() != nil && err != nil:
		return nil, exit.New(exit.Failed, "give it more by --for", "no plan was found in %v: %w", f.search, err)
	case err != nil:
		return nil, err
	}
	p := consolidate.NewPlan(s.Snapshot, found, searching.Err() == nil)
	p.Status.RemovedBy, p.Status.Notes = who, s.Notes
	return p, nil
}

func (f *consolidateFlags) show(out io.Writer, p *consolidate.Plan) {
	p.Status.Write(out)
	for _, note := range p.Status.Notes {
		fmt.Fprintf(out, "note: %s\n", host.Printable(note))
	}
	switch {
	case len(p.Spec.Nodes) == 0:
		fmt.Fprintln(out, "No node can be emptied.")
	case p.Status.RemovedBy != "":
		fmt.Fprintf(out, "'run' does not carry it out: %s removes nodes by itself.\n", host.Printable(p.Status.RemovedBy))
	default:
		fmt.Fprintf(out, "Plan %s. 'kubectl temper consolidate run' carries it out.\n", p.Metadata.Name)
	}
}
