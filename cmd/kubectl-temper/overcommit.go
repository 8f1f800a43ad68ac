package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/collect"
	"temper.dev/temper/internal/capacity/overcommit"
	"temper.dev/temper/internal/capacity/snapshot"
)

// overcommitFlags are what the commands of 'overcommit' are asked for.
type overcommitFlags struct {
	namespaces []string
	factor     float64
	floor      string
	tiers      []string
	autoscaled []string
	files      []string
	asJSON     bool
	dryRun     string
	yes        bool
	plan       bool
	whatFits   bool
	unguarded  bool
	timeout    time.Duration
	cluster    *genericclioptions.ConfigFlags
}

func newOvercommitCommand() *cobra.Command {
	f := &overcommitFlags{cluster: clusterFlags()}
	f.cluster.Namespace = nil // -n would be taken for --namespaces
	cmd := cli.Group(&cobra.Command{
		Use:   "overcommit",
		Short: "Lower the CPU requests of pods that are not critical, as an admission policy (experimental)",
		Long: `Overcommit lowers the CPU requests of pods when they are created, so that more of them fit on a node. Use it where Temper's
scheduler is enforced: there a critical pod has its CPUs, whatever else is on its node.

It lowers CPU requests and nothing else, in the namespaces that are named, and of pods that are not critical. Annotations
keep what was asked for. Left alone are pods of QoS class Guaranteed, of DaemonSets and of custom resources, static pods,
pods of workloads that are scaled by CPU utilisation, and pods that a LimitRange would then refuse.

Experimental: nothing watches what pods use that these commands have lowered, and a node where Temper is not enforced gets
them, too. Try it on clusters whose nodes are all enforced. temper-controller does both, by a CapacityPolicy.

  render, report      read, and change nothing
  apply, remove       put the policy in force, and end it: of pods that are created from then on
  repair              lower pods that the policy missed
  restore             give lowered pods back what they asked for`,
	})
	f.cluster.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand(f.renderCommand(), f.reportCommand(), f.applyCommand(), f.removeCommand(), f.repairCommand(), f.restoreCommand())
	for _, c := range cmd.Commands() {
		if c.Name() != "remove" && c.Name() != "repair" { // those do what the policy in force says
			f.addRuleFlags(c)
		}
	}
	return cmd
}

func (f *overcommitFlags) renderCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Write the admission policy as YAML, for kubectl apply",
		Long: `Write the admission policy that lowers requests, for Kubernetes 1.36 and later: MutatingAdmissionPolicies, which the API
server evaluates itself. They refuse no pod. 'kubectl temper overcommit apply' writes it to the cluster, 'remove' ends it.

TierPolicies, which say who is critical, and workloads that are scaled by CPU utilisation are written into the policy. They
are read from the cluster, or from manifests (-f). Render it again when they change. A ResourceQuota counts lowered requests.

Exit status: 0 where it was written; 1 where the cluster does not answer; 2 for wrong flags and for files that cannot be
read; 9 where no kubeconfig names a cluster.`,
		Example: `  kubectl temper overcommit render --namespaces batch,ci --factor 0.5 > overcommit.yaml
  kubectl apply -f overcommit.yaml
  kubectl temper overcommit render --namespaces batch -f tierpolicy.yaml --autoscaled batch/Deployment/web`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.render(cmd) },
	}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "read manifests or a snapshot, and no cluster; - is standard input; can be given again")
	return cmd
}

func (f *overcommitFlags) reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Say which pods were lowered, which were left alone and why, and how many CPUs that gives",
		Long: `Say of each pod in the namespaces what became of its CPU requests: by the policy that is in force, or with --namespaces by
one of these flags, which need not be in force. Where there is a CapacityPolicy, the last line says what its guard does.

  lowered      it requests what the policy makes of what it asked for
  left alone   the policy exempts it, and the last column says why
  missed       it was created while the policy was not in force; 'kubectl temper overcommit repair' lowers it
  changed      its annotations and its requests do not belong together: it was resized, or the policy has changed

Exit status: 0 where the report was given, whatever it says; 1 where the cluster does not answer; 2 for wrong flags; 9 where
no kubeconfig names a cluster.`,
		Example: `  kubectl temper overcommit report
  kubectl temper overcommit report --namespaces batch,ci --factor 0.5
  kubectl temper overcommit report --json | jq '.pods[] | select(.state == "missed") | .name'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.report(cmd) },
	}
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// addRuleFlags adds those that say what a policy is to do.
func (f *overcommitFlags) addRuleFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.namespaces, "namespaces", nil, "the namespaces that take part")
	flags.Float64Var(&f.factor, "factor", 0.5, "what a CPU request is multiplied by: above 0, at most 1")
	flags.StringVar(&f.floor, "floor", "10m", "no container's request is lowered below this")
	flags.StringSliceVar(&f.tiers, "tiers", []string{"standard", "background"}, "the tiers whose pods are lowered")
	flags.StringArrayVar(&f.autoscaled, "autoscaled", nil, "a workload to leave alone, as shop/Deployment/web, beside those that a HorizontalPodAutoscaler scales by CPU; can be given again")
}

func (f *overcommitFlags) render(cmd *cobra.Command) error {
	if _, err := f.rules(&snapshot.Snapshot{}, io.Discard); err != nil {
		return err // before a cluster is asked
	}
	s, err := f.read(cmd)
	if err != nil {
		return err
	}
	rules, err := f.rules(s, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "# By 'kubectl temper overcommit render', for Kubernetes 1.36 and later. Factor %g, floor %s, %d TierPolicies, %d autoscaled workloads.\n",
		f.factor, f.floor, len(rules.TierPolicies), len(rules.Autoscaled))
	var documents []string
	for _, object := range rules.Manifests() {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		documents = append(documents, string(text))
	}
	_, err = io.WriteString(out, strings.Join(documents, "---\n"))
	return err
}

func (f *overcommitFlags) report(cmd *cobra.Command) error {
	if len(f.namespaces) > 0 {
		if _, err := f.rules(&snapshot.Snapshot{}, io.Discard); err != nil {
			return err // before the cluster is asked
		}
	}
	cluster, err := f.connect()
	if err != nil {
		return err
	}
	var rules *overcommit.Rules
	if len(f.namespaces) == 0 {
		if rules, err = inForce(cmd.Context(), cluster); err != nil {
			return err
		}
	}
	s, err := collect.ForOvercommit(cmd.Context(), cluster, time.Now())
	if err != nil {
		return err
	}
	limits, err := collect.LimitRanges(cmd.Context(), cluster)
	if err != nil {
		return err
	}
	if rules == nil {
		if rules, err = f.rules(s.Snapshot, cmd.ErrOrStderr()); err != nil {
			return err
		}
		if err := f.known(s.Snapshot); err != nil {
			return err
		}
	}
	report := rules.Report(s.Snapshot, limits)
	if report.Guard, err = guardOf(cmd.Context(), cluster); err != nil {
		return err
	}
	if !f.asJSON {
		report.Write(cmd.OutOrStdout())
		return nil
	}
	return printJSON(cmd, report)
}

// guardOf is what temper-controller's guard does; nil: the cluster has no CapacityPolicy.
func guardOf(ctx context.Context, cluster client.Client) (*overcommit.Guard, error) {
	var list v1alpha1.CapacityPolicyList
	if err := cluster.List(ctx, &list); meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list CapacityPolicies: %w", err)
	}
	for _, p := range list.Items {
		g := &overcommit.Guard{Reason: "Unknown", Message: "temper-controller has not looked at the CapacityPolicy yet", FactorPercent: p.Status.FactorPercent}
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionGuarded); c != nil {
			g.Reason, g.Message = c.Reason, c.Message
		}
		return g, nil // there is one
	}
	return nil, nil
}

func printJSON(cmd *cobra.Command, what any) error {
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(what)
}

// known refuses namespaces that are not there.
func (f *overcommitFlags) known(s *snapshot.Snapshot) error {
	for _, name := range f.namespaces {
		if !slices.ContainsFunc(s.Namespaces, func(n *corev1.Namespace) bool { return n.Name == name }) {
			return exit.New(exit.Failed, "'kubectl get namespaces' lists them", "there is no namespace %q", name)
		}
	}
	return nil
}

func (f *overcommitFlags) connect() (client.Client, error) {
	config, err := restConfig(f.cluster)
	if err != nil {
		return nil, err
	}
	config.Timeout = cmp.Or(config.Timeout, patience)
	config.QPS, config.Burst = 200, 400 // a pod that is repaired is written to three times
	return client.New(config, client.Options{Scheme: collect.Scheme(admissionv1.AddToScheme)})
}

// read takes what the rules rest on, of files or of the cluster.
func (f *overcommitFlags) read(cmd *cobra.Command) (*snapshot.Snapshot, error) {
	if len(f.files) > 0 {
		r, err := collect.FromFiles(cmd.InOrStdin(), f.files, time.Now())
		if err != nil {
			return nil, badFile(err)
		}
		return r.Snapshot, nil
	}
	cluster, err := f.connect()
	if err != nil {
		return nil, err
	}
	r, err := collect.ForOvercommit(cmd.Context(), cluster, time.Now())
	if err != nil {
		return nil, err
	}
	return r.Snapshot, nil
}

// rules are those that the flags and the snapshot state. What cannot be exempted is told the log.
func (f *overcommitFlags) rules(s *snapshot.Snapshot, log io.Writer) (*overcommit.Rules, error) {
	floor, err := resource.ParseQuantity(f.floor)
	if err != nil {
		return nil, exit.New(exit.Usage, "write it as 10m", "--floor %q: %w", f.floor, err)
	}
	p := overcommit.Policy{Namespaces: f.namespaces, Factor: f.factor, Floor: floor.MilliValue(), TierPolicies: s.TierPolicies}
	for _, name := range f.tiers {
		t, err := tier.Parse(name)
		if err != nil {
			return nil, exit.New(exit.Usage, "", "--tiers: %w", err)
		}
		p.Tiers = append(p.Tiers, t)
	}
	known, unknown := overcommit.Autoscaled(s.Autoscalers, f.namespaces)
	p.Autoscaled = known
	for _, w := range unknown {
		fmt.Fprintf(log, "kubectl temper: %s %s/%s is scaled by CPU utilisation, and its pods cannot be exempted; leave its namespace out\n", w.Kind, w.Namespace, w.Name)
	}
	for _, text := range f.autoscaled {
		parts := strings.Split(text, "/")
		if len(parts) != 3 {
			return nil, exit.New(exit.Usage, "write it as shop/Deployment/web", "--autoscaled %q has no namespace, kind and name", text)
		}
		p.Autoscaled = append(p.Autoscaled, snapshot.Workload{Namespace: parts[0], Kind: parts[1], Name: parts[2]})
	}
	rules, err := overcommit.Compile(p)
	if err != nil {
		return nil, exit.New(exit.Usage, "", "%w", err)
	}
	return rules, nil
}
