package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/capacity/collect"
	"temper.dev/temper/internal/capacity/overcommit"
	"temper.dev/temper/internal/capacity/overcommit/incluster"
	"temper.dev/temper/internal/capacity/snapshot"
)

func (f *overcommitFlags) applyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Put the admission policy in force, or change it",
		Long: `Write what 'render' writes to the cluster, and wait until the API server does what it says: a pod is tried out in each
namespace, and not made. Run it again when TierPolicies or autoscalers change.

Pods that run keep their requests; 'kubectl temper overcommit repair' lowers them. Where the namespaces' nodes do not all
enforce tiers, it names them and asks. Without a terminal it then refuses, unless --yes is given.

Exit status: 0 where the policy is in force; 1 where it is not, or the cluster does not answer; 2 for wrong flags, and where
it may not ask; 9 where no kubeconfig names a cluster.`,
		Example: `  kubectl temper overcommit apply --namespaces batch,ci --factor 0.5 --dry-run server
  kubectl temper overcommit apply --namespaces batch,ci --factor 0.5`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.apply(cmd) },
	}
	cmd.Flags().BoolVar(&f.yes, "yes", false, "ask nothing")
	f.addChangeFlags(cmd, "server: have the API server check it, and change nothing")
	f.addTimeout(cmd, "how long the API server may take to do what the policy says")
	return cmd
}

func (f *overcommitFlags) apply(cmd *cobra.Command) error {
	dry, err := f.isDryRun("server")
	if err != nil {
		return err
	}
	if len(f.namespaces) == 0 {
		return exit.New(exit.Usage, "name those that take part; 'kubectl temper overcommit remove' ends it", "--namespaces: there is none")
	}
	if _, err := f.rules(&snapshot.Snapshot{}, io.Discard); err != nil {
		return err // before the cluster is asked
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	cluster, err := f.connect()
	if err != nil {
		return err
	}
	s, err := collect.ForOvercommit(ctx, cluster, time.Now())
	if err != nil {
		return err
	}
	if err := f.known(s.Snapshot); err != nil {
		return err
	}
	rules, err := f.rules(s.Snapshot, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if rules, err = f.following(ctx, cluster, rules, out); err != nil {
		return err
	}
	bare := notEnforced(s.Snapshot, f.namespaces)
	for _, line := range bare {
		fmt.Fprintln(out, line)
	}
	if dry {
		made, err := incluster.Write(ctx, cluster, rules.Manifests(), true)
		writeMade(out, made, "would be ")
		return err
	}
	if len(bare) > 0 && !f.yes {
		if err := confirm(cmd, "Lower requests of pods on nodes that are not enforced?"); err != nil {
			return err
		}
	}
	namespaces, err := incluster.Namespaces(ctx, cluster, rules.Namespaces)
	if err != nil {
		return err
	}
	made, err := incluster.Write(ctx, cluster, rules.Manifests(), false)
	writeMade(out, made, "")
	if err != nil {
		return err
	}
	if err := f.await(cmd, cluster, rules, namespaces); err != nil {
		return err
	}
	fmt.Fprintln(out, "The API server does what it says. Pods that run keep their requests: 'kubectl temper overcommit report' lists those that were missed, 'repair' lowers them.")
	return nil
}

// following are the rules as they come after those that the cluster has, and says what of the namespaces changes.
func (f *overcommitFlags) following(ctx context.Context, cluster client.Client, rules *overcommit.Rules, out io.Writer) (*overcommit.Rules, error) {
	policies, err := incluster.Read(ctx, cluster)
	if err != nil {
		return nil, err
	}
	earlier, err := policies.Guarding()
	if err != nil {
		return nil, exit.New(exit.Failed, "delete it, and give the flags that it was rendered with", "%w", err)
	}
	if err := notKept(earlier); err != nil {
		return nil, err
	}
	var before []string
	if lowering, err := policies.Lowering(); err == nil && lowering != nil {
		before = lowering.Namespaces
		if lowering.Factor != rules.Factor || lowering.Floor != rules.Floor {
			fmt.Fprintf(out, "factor %g, floor %dm: they were %g and %dm; pods that run keep what those made of their requests\n", rules.Factor, rules.Floor, lowering.Factor, lowering.Floor)
		}
	}
	for _, name := range rules.Namespaces {
		if !slices.Contains(before, name) {
			fmt.Fprintf(out, "namespace %s takes part from now on\n", name)
		}
	}
	for _, name := range before {
		if !slices.Contains(rules.Namespaces, name) {
			fmt.Fprintf(out, "namespace %s takes part no more: its lowered pods keep what they request\n", name)
		}
	}
	if earlier == nil {
		return rules, nil
	}
	return rules.After(earlier)
}

// notEnforced says of each namespace on which of its nodes tiers are not enforced. One without pods may have any node.
func notEnforced(s *snapshot.Snapshot, namespaces []string) (lines []string) {
	enforced := map[string]bool{}
	for _, report := range s.TemperNodes {
		enforced[report.Name] = meta.IsStatusConditionTrue(report.Status.Conditions, v1alpha1.ConditionEnforced)
	}
	for _, namespace := range namespaces {
		has := map[string]bool{}
		for _, pod := range s.Pods {
			if pod.Namespace == namespace && pod.Spec.NodeName != "" {
				has[pod.Spec.NodeName] = true
			}
		}
		var bare []string
		all := 0
		for _, node := range s.Nodes {
			if len(has) > 0 && !has[node.Name] {
				continue
			}
			if all++; !enforced[node.Name] {
				bare = append(bare, node.Name)
			}
		}
		if len(bare) > 0 {
			slices.Sort(bare)
			lines = append(lines, fmt.Sprintf("namespace %s: tiers are not enforced on %d of its %d nodes: %s", namespace, len(bare), all, strings.Join(bare, ", ")))
		}
	}
	return lines
}

// confirm asks whoever sits before the terminal.
func confirm(cmd *cobra.Command, question string) error {
	in, isFile := cmd.InOrStdin().(io.Writer)
	if !isFile || !cli.IsTerminal(in) {
		return exit.New(exit.Usage, "--yes does it all the same", "this must be confirmed, and there is no terminal to ask on")
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return exit.New(exit.Failed, "", "nothing was changed")
	}
	return nil
}
