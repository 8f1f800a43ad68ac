package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/internal/capacity/advice"
	"temper.dev/temper/internal/capacity/collect"
	"temper.dev/temper/internal/capacity/plan"
)

// adviseFlags are what 'advise' is asked for.
type adviseFlags struct {
	files      []string
	prometheus string
	window     time.Duration
	search     time.Duration
	seed       uint64
	shapes     []string
	asJSON     bool
	html       string
	save       string
	cluster    *genericclioptions.ConfigFlags
}

func newAdviseCommand() *cobra.Command {
	f := &adviseFlags{cluster: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Say what a cluster could give back, and which nodes it could do without",
		Long: `Say what could be saved in a cluster, before Temper is installed or after. It reads, and changes nothing:

  - which nodes break the sizing rule: what critical pods want fits in a node's physical cores but one
  - what each namespace could give back, in CPUs
  - which tier pods are in, and why
  - the fewest nodes that hold the pods, and what keeps the others: each plan is tried out with kube-scheduler's plugins
  - how many nodes of which shape the pods come to

With -f it reads manifests or a snapshot (--save), and asks no cluster. Workloads whose pods no file has count with their
replicas. Nodes are best taken out of a cluster: 'kubectl get nodes -o yaml'.

A number of CPUs to give back takes 24 hours of data, by Prometheus (--prometheus) or a VerticalPodAutoscaler. Prometheus
must scrape container_cpu_usage_seconds_total once a minute or more often. A critical pod is advised to request its highest
minute, another what it stayed below for 95 % of the minutes, or what its VerticalPodAutoscaler recommends. metrics.k8s.io
knows one moment only: it is shown, and no advice rests on it. Pods whose number follows their CPU requests
(HorizontalPodAutoscaler) get none.

Only enforced nodes can be emptied. Where none is, the plan says what it would be "if enforced". Physical cores are not
reported yet: half of a node's CPUs are taken for them. Progress goes to standard error. The same snapshot and --seed give
the same plan, unless --for ends the search.

Exit status: 0 where advice was given, whatever it says; 1 where the cluster or Prometheus does not answer, or no plan was
found in time; 2 for wrong flags and for files that cannot be read; 9 where no kubeconfig names a cluster.`,
		Example: `  kubectl temper advise
  kubectl temper advise --prometheus http://localhost:9090 --html advice.html
  kubectl temper advise node node-7
  kubectl temper advise -f manifests/ --shape 16x64Gi
  kubectl temper advise --save cluster.json && kubectl temper advise -f cluster.json --for 5m
  kubectl temper advise --json | jq '.nodes[] | select(.fits | not) | .node'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, "") },
	}
	cmd.AddCommand(f.nodeCommand())
	f.addFlags(cmd.PersistentFlags())
	return cmd
}

func (f *adviseFlags) nodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "node NAME",
		Short: "Say it of one node: its pods, whether they fit, and whether it could go",
		Long: `Say of one node whether its critical pods fit, what its pods could give back, which tiers they are in, and whether the
cluster could do without the node, or what keeps it. The plan is that of the whole cluster.

Exit status: that of 'kubectl temper advise', and 1 where there is no such node.`,
		Example: `  kubectl temper advise node node-7
  kubectl temper advise node node-7 -f cluster.json --json`,
		Args:              cli.Args("NAME"),
		ValidArgsFunction: nodeNames(f.cluster),
		RunE:              func(cmd *cobra.Command, names []string) error { return f.run(cmd, names[0]) },
	}
}

func (f *adviseFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "manifest, folder of manifests, or snapshot; - is standard input; can be given again")
	flags.StringVar(&f.prometheus, "prometheus", "", "URL of a Prometheus that has container_cpu_usage_seconds_total")
	flags.DurationVar(&f.window, "window", 7*24*time.Hour, "of Prometheus: how far to look back, in whole days")
	flags.DurationVar(&f.search, "for", 30*time.Second, "how long to search for a plan at most")
	flags.Uint64Var(&f.seed, "seed", 0, "first of the seeds of what kube-scheduler leaves to chance")
	flags.StringArrayVar(&f.shapes, "shape", nil, "a shape of node to count with, as 16x64Gi or 16x64Gix110; can be given again")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	flags.StringVar(&f.html, "html", "", "write a page with plots to this file, too")
	flags.StringVar(&f.save, "save", "", "write the snapshot that the advice rests on to this file, for -f")
	f.cluster.AddFlags(flags)
}

func (f *adviseFlags) run(cmd *cobra.Command, node string) error {
	shapes, err := f.check()
	if err != nil {
		return err
	}
	log := newProgress(cmd.ErrOrStderr())
	defer log.end()
	now := time.Now()
	r, err := f.read(cmd.Context(), cmd.InOrStdin(), now)
	if err != nil {
		return err
	}
	if f.prometheus != "" {
		asked := func(done, of int) {
			log.say(func() string { return fmt.Sprintf("Prometheus: %d of %d namespaces", done, of) })
		}
		if err := r.AddPrometheus(cmd.Context(), f.prometheus, f.window, now, asked); err != nil {
			return exit.New(exit.Failed, "check --prometheus, or give a shorter --window", "%w", err)
		}
	}
	if f.save != "" {
		if err := writeFile(f.save, r.Write); err != nil {
			return err
		}
	}
	a, err := f.advise(cmd.Context(), r, shapes, log)
	if err != nil {
		return err
	}
	if node != "" {
		var known bool
		if a, known = a.Of(node); !known {
			return exit.New(exit.Failed, "'kubectl get nodes' lists them", "there is no node %q", node)
		}
	}
	if f.html != "" {
		if err := writeFile(f.html, a.WriteHTML); err != nil {
			return err
		}
	}
	log.end()
	if !f.asJSON {
		a.Write(cmd.OutOrStdout())
		return nil
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(a)
}

// check refuses what is wrong before anything is asked.
func (f *adviseFlags) check() (shapes []advice.Shape, err error) {
	for _, text := range f.shapes {
		shape, err := advice.ParseShape(text)
		if err != nil {
			return nil, exit.New(exit.Usage, "", "--shape: %w", err)
		}
		shapes = append(shapes, shape)
	}
	switch {
	case f.window < 24*time.Hour:
		return nil, exit.New(exit.Usage, "use 24h or more", "--window %v is less than a day", f.window)
	case f.search <= 0:
		return nil, exit.New(exit.Usage, "use 30s", "--for %v leaves no time", f.search)
	}
	if err := checkPlace("--html", f.html); err != nil {
		return nil, err
	}
	return shapes, checkPlace("--save", f.save)
}

// read takes the snapshot, with what the cluster itself says of the pods' use.
func (f *adviseFlags) read(ctx context.Context, in io.Reader, now time.Time) (*collect.Result, error) {
	if len(f.files) > 0 {
		r, err := collect.FromFiles(in, f.files, now)
		if err != nil {
			return nil, badFile(err)
		}
		return r, nil
	}
	config, err := restConfig(f.cluster)
	if err != nil {
		return nil, err
	}
	cluster, err := client.New(config, client.Options{Scheme: collect.Scheme()})
	if err != nil {
		return nil, err
	}
	r, err := collect.FromCluster(ctx, cluster, now)
	if err != nil {
		return nil, err
	}
	if err := r.AddMoment(ctx, cluster); err != nil {
		return nil, err
	}
	return r, r.AddRecommendations(ctx, cluster, now)
}

// advise searches for as long as it may, and shows how far it has come.
func (f *adviseFlags) advise(ctx context.Context, r *collect.Result, shapes []advice.Shape, log *progress) (*advice.Advice, error) {
	searching, stop := context.WithTimeout(ctx, f.search)
	defer stop()
	end := time.Now().Add(f.search)
	left := func() string { return "at most " + live.Clock(max(0, time.Until(end))) + " left" }
	log.say(func() string { return "looking for the first plan, " + left() })
	go log.keep(searching)
	a, err := advice.Make(searching, r.Snapshot, advice.Options{Notes: r.Notes, Seed: f.seed, Shapes: shapes, Improved: func(p *plan.Plan) {
		found := fmt.Sprintf("%d of %d nodes would do, fewer than %d never; ", p.NodesAfter, p.NodesBefore, p.AtLeast)
		log.say(func() string { return found + left() })
	}})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case searching.Err() != nil && err != nil:
		return nil, exit.New(exit.Failed, "give it more by --for", "no plan was found in %v: %w", f.search, err)
	}
	return a, err
}

// badFile is why what -f names cannot be read.
func badFile(err error) error {
	cure := ""
	if errors.Is(err, fs.ErrNotExist) {
		cure = "give -f a file or a folder that is there"
	}
	return exit.New(exit.Usage, cure, "%w", err)
}

// checkPlace refuses a file for which there is no folder, before anything is asked that takes its time.
func checkPlace(flag, name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(name)); err != nil || !info.IsDir() {
		return exit.New(exit.Usage, "make it, or name another", "%s %s: there is no folder %s", flag, name, filepath.Dir(name))
	}
	return nil
}

// writeFile makes a file that only its owner may read: a cluster's objects have annotations, and some of those secrets.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		file.Close()
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return file.Close()
}
