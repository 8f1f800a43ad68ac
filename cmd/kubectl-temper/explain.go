package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"temper.dev/temper/internal/cli"
	"temper.dev/temper/internal/exit"
	"temper.dev/temper/internal/explain"
	"temper.dev/temper/packaging/kubernetes"
)

const stdin = "-"

func newExplainCommand() *cobra.Command {
	var files []string
	var nodeLabels string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain -f FILE...",
		Short: "Say which tier pods will be in, and which rule of which policy says so",
		Long: `Say of each pod, and of each workload that makes pods, which tier it will be in, and which rule of which
TierPolicy says so. It reads manifests, and asks no cluster: run it before a policy or a service is applied.

Files may hold pods, Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs and CronJobs; TierPolicies;
PriorityClasses, whose values rules may ask for; and Nodes, whose labels tell which policy is for a pod that is
bound to one. Whatever else they hold is left alone, and named on standard error. A later policy or class of the
same name takes the earlier one's place. Temper's own default policy and PriorityClasses stand in for those that
no file has.

A pod's label temper.dev/tier lowers its tier; one that would raise it is refused, which is shown below
the table, as is what cannot be known from the files. What admission may change beyond what they say is not: a
webhook, a LimitRange or a default PriorityClass that no file has.`,
		Example: `  kubectl temper explain -f deployment.yaml
  kubectl temper explain -f services/ -f policy.yaml --node-labels pool=latency
  kubectl get pods,nodes,priorityclasses,limitranges -A -o yaml | kubectl temper explain -f - -f policy.yaml
  kubectl temper explain -f services/ --json | jq '.[] | {name, tier, rule}'`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return exit.New(exit.Usage, "name them with -f; -f - is standard input", "there are no files to explain")
			}
			node, err := labels.ConvertSelectorToLabelsMap(nodeLabels)
			if err != nil {
				return exit.New(exit.Usage, "write them as pool=latency,zone=a", "--node-labels: %w", err)
			}
			manifests, err := read(cmd.InOrStdin(), files)
			if err != nil {
				return exit.New(exit.Usage, "", "%w", err)
			}
			for _, kind := range slices.Sorted(maps.Keys(manifests.Others())) {
				fmt.Fprintf(cmd.ErrOrStderr(), "kubectl temper: left alone: %d of %s\n", manifests.Others()[kind], kind)
			}
			if err := addDefaults(manifests, cmd.ErrOrStderr()); err != nil {
				return err
			}
			answers, err := manifests.Answers(node)
			if err != nil {
				return exit.New(exit.Usage, "", "%w", err)
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(answers)
			}
			explain.Write(cmd.OutOrStdout(), answers)
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "manifest, or folder of manifests (.yaml, .yml, .json); - is standard input; can be given again")
	cmd.Flags().StringVar(&nodeLabels, "node-labels", "", "labels of the node that the pods will run on")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
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
