package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/cluster/explain"
	"temper.dev/temper/packaging/kubernetes"
)

const stdin = "-"

// explainFlags are what 'explain' is asked for.
type explainFlags struct {
	files         []string
	nodeLabels    string
	allNamespaces bool
	asJSON        bool
	cluster       *genericclioptions.ConfigFlags
}

func newExplainCommand() *cobra.Command {
	f := &explainFlags{cluster: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "explain [POD...] | explain -f FILE...",
		Short: "Say which tier pods are in, and which rule of which policy says so",
		Long: `Say of pods which tier they are in, and which rule of which TierPolicy says so: of the pods that are named, else of
all of the namespace that have not ended.

With -f it reads manifests instead, and asks no cluster: run it before a policy or a service is applied. It then
answers for each pod, and each workload that makes pods. Files may hold pods, Deployments, StatefulSets,
DaemonSets, ReplicaSets, Jobs and CronJobs; TierPolicies; PriorityClasses, whose values rules may ask for; Nodes,
whose labels tell which policy is for a pod that is bound to one; and Namespaces, whose labels say which tier pods
may be in at most. Whatever else they hold is left alone, and named on standard error. A later policy or class of
the same name takes the earlier one's place. Temper's own default policy and PriorityClasses stand in for those
that no file has.

A pod's label temper.dev/tier lowers its tier, and temper.dev/limits chooses how its CPU limits are kept. A label that
would raise the tier, or asks for a mode that the policy does not grant, is refused, which is shown below the table,
as is what cannot be known and, of a cluster's critical pods, what they request, and up to how many CPUs critical work
on their node comes first. Of a cluster's pods the last column says whether their node's agent reports
them in that tier, and the tiers as enforced. Of manifests that does not include what admission may change beyond
what the files say: a webhook, a LimitRange or a default PriorityClass that no file has.`,
		Example: `  kubectl temper explain -n shop
  kubectl temper explain -n shop web-7d4b9c-x2x8z
  kubectl temper explain -A --json | jq '.[] | select(.tier == "critical") | .name'
  kubectl temper explain -f deployment.yaml
  kubectl temper explain -f services/ -f policy.yaml --node-labels pool=latency
  kubectl get pods,nodes,namespaces,priorityclasses,limitranges -A -o yaml | kubectl temper explain -f - -f policy.yaml`,
		RunE: func(cmd *cobra.Command, names []string) error {
			answers, err := f.answers(cmd, names)
			if err != nil {
				return err
			}
			if f.asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(answers)
			}
			explain.Write(cmd.OutOrStdout(), answers)
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "manifest, or folder of manifests (.yaml, .yml, .json); - is standard input; can be given again")
	cmd.Flags().StringVar(&f.nodeLabels, "node-labels", "", "with -f: labels of the node that the pods will run on")
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "the pods of all namespaces")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	f.cluster.AddFlags(cmd.Flags())
	return cmd
}

func (f *explainFlags) answers(cmd *cobra.Command, names []string) ([]explain.Answer, error) {
	switch {
	case len(f.files) > 0 && (len(names) > 0 || f.allNamespaces):
		return nil, exit.New(exit.Usage, "leave out -f, or the pods' names and -A", "pods are those of the files, or those of the cluster")
	case len(f.files) > 0:
		return f.ofFiles(cmd.InOrStdin(), cmd.ErrOrStderr())
	case f.nodeLabels != "":
		return nil, exit.New(exit.Usage, "leave it out; pods of a cluster have a node", "--node-labels is for manifests (-f)")
	case f.allNamespaces && len(names) > 0:
		return nil, exit.New(exit.Usage, "give their namespace by -n", "a pod's name may be in many namespaces")
	}
	return f.ofCluster(cmd.Context(), names, cmd.ErrOrStderr())
}

// ofFiles answers for manifests; what it leaves alone, and what stands in, it tells the log.
func (f *explainFlags) ofFiles(in io.Reader, log io.Writer) ([]explain.Answer, error) {
	node, err := labels.ConvertSelectorToLabelsMap(f.nodeLabels)
	if err != nil {
		return nil, exit.New(exit.Usage, "write them as pool=latency,zone=a", "--node-labels: %w", err)
	}
	manifests, err := read(in, f.files)
	if err != nil {
		return nil, badFile(err)
	}
	for _, kind := range slices.Sorted(maps.Keys(manifests.Others())) {
		fmt.Fprintf(log, "kubectl temper: left alone: %d of %s\n", manifests.Others()[kind], kind)
	}
	if err := addDefaults(manifests, log); err != nil {
		return nil, err
	}
	answers, err := manifests.Answers(node)
	if err != nil {
		return nil, exit.New(exit.Usage, "", "%w", err)
	}
	return answers, nil
}

// ofCluster answers for pods of the cluster; policies that are not valid it tells the log.
func (f *explainFlags) ofCluster(ctx context.Context, names []string, log io.Writer) ([]explain.Answer, error) {
	cluster, namespace, err := connect(f.cluster)
	if err != nil {
		return nil, err
	}
	if f.allNamespaces {
		namespace = ""
	}
	answers, faults, err := explain.OfCluster(ctx, cluster, namespace, names)
	for _, fault := range faults {
		fmt.Fprintf(log, "kubectl temper: left out: %v\n", fault)
	}
	switch {
	case meta.IsNoMatchError(err):
		return nil, exit.New(exit.Failed, "install Temper in it, or explain manifests with -f", "this cluster knows no TierPolicy")
	case err != nil:
		return nil, err
	case len(answers) == 0 && namespace != "":
		fmt.Fprintf(log, "kubectl temper: there are no pods in namespace %s\n", namespace)
	}
	return answers, nil
}

func read(in io.Reader, files []string) (*explain.Manifests, error) {
	m := &explain.Manifests{}
	for _, name := range files {
		if name == stdin {
			if err := m.Read("standard input", in); err != nil {
				return nil, err
			}
			continue
		}
		if err := m.ReadPath(name); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// addDefaults adds what a cluster with Temper has, and the files have not.
func addDefaults(m *explain.Manifests, log io.Writer) error {
	d := &explain.Manifests{}
	for _, text := range [][]byte{kubernetes.DefaultPolicy, kubernetes.PriorityClasses} {
		if err := d.Read("Temper's defaults", bytes.NewReader(text)); err != nil {
			return err
		}
	}
	if stand := m.AddMissing(d); len(stand) > 0 {
		fmt.Fprintf(log, "kubectl temper: Temper's own stand in for what no file has: %s\n", strings.Join(stand, ", "))
	}
	return nil
}
