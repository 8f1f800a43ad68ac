package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
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
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.apply(cmd) },
	}
	cmd.Flags().BoolVar(&f.yes, "yes", false, "ask nothing")
	f.addChangeFlags(cmd, "server: have the API server check it, and change nothing")
	f.addTimeout(cmd, "how long the API server may take to do what the policy says")
	return cmd
}

func (f *overcommitFlags) removeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "End the admission policy: pods keep what they request",
		Long: `End the policy: pods that are created from now on request what they ask for. Lowered pods keep what they request, until
'kubectl temper overcommit restore' gives it back, or they are made anew.

As long as there are lowered pods, the policies stay in a form that lowers nothing: they keep users from writing originals,
which 'restore' will believe. 'restore' deletes them with the last one.

Exit status: 0 where the policy has ended; 1 where it has not, or the cluster does not answer; 2 for wrong flags; 9 where no
kubeconfig names a cluster.`,
		Example: `  kubectl temper overcommit remove --dry-run server
  kubectl temper overcommit remove && kubectl temper overcommit restore --plan`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.remove(cmd) },
	}
	f.addChangeFlags(cmd, "server: have the API server check it, and change nothing")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "end also what a CapacityPolicy keeps: where temper-controller is gone")
	f.addTimeout(cmd, "how long the API server may take to follow")
	return cmd
}

func (f *overcommitFlags) repairCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Lower the pods that the policy missed, in place",
		Long: `Lower the pods that were created while the policy was not in force, to what they would have been admitted with: by resizes
in place, which restart nothing. 'kubectl temper overcommit report' lists these pods as missed.

A pod is left alone where a resize would do more: where its resizePolicy restarts a container, or a LimitRange that is
younger than the pod would give it defaults. A pod that fails is named, and the others go on. It can be interrupted and run
again, and by two people at a time.

Exit status: 0 where no pod failed; 1 where one did, no policy is in force, or the cluster does not answer; 2 for wrong
flags; 9 where no kubeconfig names a cluster.`,
		Example: `  kubectl temper overcommit repair --dry-run client
  kubectl temper overcommit repair`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.repair(cmd) },
	}
	f.addChangeFlags(cmd, "client: list the pods, and change nothing")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func (f *overcommitFlags) restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Give lowered pods back what they asked for, in place, or say what that takes",
		Long: `Give lowered pods back what they asked for, by resizes in place, and remove the annotations. End the policy first, by
'kubectl temper overcommit remove': new pods would still be lowered.

With --plan it changes nothing, and says of each node which CPUs are missing. Where some are missing, it does nothing unless
--what-fits is given. Then pods of higher priority come first, and of these the ones that take least; no node is filled
above what it can allocate. A kubelet may still defer a resize, or call it infeasible: such pods are named.

An original counts only where a factor that the policy had makes of it what the pod requests. Where the policies were
deleted, nothing has kept users from writing originals since. Say --unguarded to believe them all the same, and give the
flags of the policy that there was.

Exit status: 0 where all pods are restored that were not changed since, and for --plan; 1 where one is not, CPUs are
missing, or the cluster does not answer; 2 for wrong flags; 9 where no kubeconfig names a cluster.`,
		Example: `  kubectl temper overcommit restore --plan
  kubectl temper overcommit restore
  kubectl temper overcommit restore --what-fits
  kubectl temper overcommit restore --unguarded --namespaces batch --factor 0.5`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.restore(cmd) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.plan, "plan", false, "say what is missing on each node, and change nothing")
	flags.BoolVar(&f.whatFits, "what-fits", false, "restore the pods that fit where CPUs are missing")
	flags.BoolVar(&f.unguarded, "unguarded", false, "believe originals that nothing has kept users from writing")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	f.addTimeout(cmd, "how long kubelets may take to answer")
	return cmd
}

func (f *overcommitFlags) addChangeFlags(cmd *cobra.Command, dryRun string) {
	cmd.Flags().StringVar(&f.dryRun, "dry-run", "none", dryRun)
}

func (f *overcommitFlags) addTimeout(cmd *cobra.Command, what string) {
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, what)
}

// isDryRun says whether nothing is to be changed; of is the one kind that a command has.
func (f *overcommitFlags) isDryRun(of string) (bool, error) {
	if f.dryRun != "none" && f.dryRun != of {
		return false, exit.New(exit.Usage, "", "--dry-run %q is neither none nor %s", f.dryRun, of)
	}
	return f.dryRun == of, nil
}

// inForce are the rules by which the cluster's API server lowers pods.
func inForce(ctx context.Context, cluster client.Client) (*overcommit.Rules, error) {
	policies, err := incluster.Read(ctx, cluster)
	if err != nil {
		return nil, err
	}
	rules, err := policies.Lowering()
	if err == nil && rules == nil {
		err = exit.New(exit.Failed, "'kubectl temper overcommit apply' puts one in force", "no overcommit policy is in force in this cluster")
	}
	return rules, err
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

// notKept refuses to change policies that a controller would change back.
func notKept(rules *overcommit.Rules) error {
	if rules == nil || rules.KeptBy == "" {
		return nil
	}
	return exit.New(exit.Failed, "change or delete that; where no controller runs, 'kubectl temper overcommit remove --yes' ends the policies",
		"CapacityPolicy %s keeps the policies, by temper-controller", rules.KeptBy)
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

func writeMade(out io.Writer, made []incluster.Made, would string) {
	for _, m := range made {
		change := would + m.Change
		if m.Change == "unchanged" {
			change = m.Change
		}
		fmt.Fprintf(out, "%s %s: %s\n", m.Kind, m.Name, change)
	}
}

// await shows that it waits.
func (f *overcommitFlags) await(cmd *cobra.Command, cluster client.Client, rules *overcommit.Rules, namespaces map[string]overcommit.Namespace) error {
	p := newProgress(cmd.ErrOrStderr())
	defer p.end()
	p.say(func() string { return "waiting until the API server does what the policy says" })
	return incluster.Await(cmd.Context(), cluster, rules, namespaces, f.timeout)
}

func (f *overcommitFlags) remove(cmd *cobra.Command) error {
	dry, err := f.isDryRun("server")
	if err != nil {
		return err
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	cluster, err := f.connect()
	if err != nil {
		return err
	}
	policies, err := incluster.Read(ctx, cluster)
	if err != nil {
		return err
	}
	if policies.Keep == nil && policies.Lower == nil {
		return exit.New(exit.Failed, "", "this cluster has no overcommit policy")
	}
	rules, err := policies.Guarding()
	if err == nil && rules == nil {
		rules, err = overcommit.Stored(policies.Lower)
	}
	if err != nil {
		return exit.New(exit.Failed, "'kubectl temper overcommit apply' with the flags that it was rendered with writes it anew", "%w", err)
	}
	if err := notKept(rules); err != nil && !f.yes {
		return err
	}
	rules.KeptBy = ""
	namespaces, err := incluster.Namespaces(ctx, cluster, rules.Namespaces)
	if err != nil {
		return err
	}
	made, err := incluster.Write(ctx, cluster, rules.Closing(), dry)
	writeMade(out, made, map[bool]string{true: "would be "}[dry])
	if err != nil || dry {
		return err
	}
	// Only then is nobody lowered between the look at the pods and the end of what keeps their originals.
	if err := f.await(cmd, cluster, rules.Closed(), namespaces); err != nil {
		return err
	}
	lowered, err := incluster.Lowered(ctx, cluster, rules)
	switch {
	case err != nil:
		return err
	case lowered == 0:
		made, err := incluster.Delete(ctx, cluster, rules.Manifests())
		writeMade(out, made, "")
		return err
	}
	fmt.Fprintf(out, "Requests are lowered no more. %d pods keep what they request: 'kubectl temper overcommit restore' gives them back what they asked for, and deletes the policies.\n", lowered)
	return nil
}

func (f *overcommitFlags) repair(cmd *cobra.Command) error {
	dry, err := f.isDryRun("client")
	if err != nil {
		return err
	}
	cluster, err := f.connect()
	if err != nil {
		return err
	}
	rules, err := inForce(cmd.Context(), cluster)
	if err != nil {
		return err
	}
	count, end := counting(cmd, "lowered")
	outcomes, err := incluster.Repair(cmd.Context(), cluster, rules, dry, count)
	end()
	if err := f.show(cmd, outcomes, incluster.StateLowered); err != nil {
		return err
	}
	if !f.asJSON {
		fmt.Fprintf(cmd.OutOrStdout(), "%d pods lowered, %d to do, %d left alone, %d failed.\n", outcomes.Count(incluster.StateLowered),
			outcomes.Count(incluster.StateDue), outcomes.Count(incluster.StateLeft), outcomes.Count(incluster.StateFailed))
	}
	if failed := outcomes.Count(incluster.StateFailed); err == nil && failed > 0 {
		return exit.New(exit.Failed, "run it again once what is in the way is gone", "%d pods could not be lowered", failed)
	}
	return err
}

// show prints outcomes: as a table those that are not as wanted, as JSON all.
func (f *overcommitFlags) show(cmd *cobra.Command, outcomes incluster.Outcomes, wanted string) error {
	if f.asJSON {
		return printJSON(cmd, struct {
			Pods incluster.Outcomes `json:"pods"`
		}{append(incluster.Outcomes{}, outcomes...)})
	}
	slices.DeleteFunc(slices.Clone(outcomes), func(o incluster.Outcome) bool { return o.State == wanted }).Write(cmd.OutOrStdout())
	return nil
}

// counting shows how many pods are done: each second on a terminal, each hundred elsewhere.
func counting(cmd *cobra.Command, done string) (count func(n, all int), end func()) {
	p := newProgress(cmd.ErrOrStderr())
	ctx, stop := context.WithCancel(cmd.Context())
	var mu sync.Mutex
	var text string
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return text
	}
	var kept sync.WaitGroup
	kept.Go(func() { p.keep(ctx) })
	count = func(n, all int) {
		mu.Lock()
		text = fmt.Sprintf("%d of %d pods %s", n, all, done)
		mu.Unlock()
		if all > 0 && n%100 == 0 {
			p.say(said)
		}
	}
	return count, func() { stop(); kept.Wait(); p.end() }
}

func (f *overcommitFlags) restore(cmd *cobra.Command) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	cluster, err := f.connect()
	if err != nil {
		return err
	}
	rules, guarded, err := f.restoring(cmd, cluster)
	if err != nil {
		return err
	}
	plan, err := incluster.Plan(ctx, cluster, rules)
	if err != nil {
		return err
	}
	missing := plan.MissingCPUs > 0
	if f.plan && f.asJSON {
		return printJSON(cmd, plan)
	}
	if f.plan || missing && !f.whatFits {
		plan.Write(out)
	}
	switch {
	case f.plan:
		return nil
	case missing && !f.whatFits:
		return exit.New(exit.Failed, "add nodes, or restore what fits by --what-fits", "%g CPUs are missing; nothing was changed", plan.MissingCPUs)
	}
	count, end := counting(cmd, "restored")
	outcomes, err := incluster.Restore(ctx, cluster, rules, plan, f.timeout, count)
	end()
	if err := f.show(cmd, outcomes, incluster.StateRestored); err != nil {
		return err
	}
	restored, changed := outcomes.Count(incluster.StateRestored), outcomes.Count(incluster.StateStale)
	open := len(outcomes) - restored - changed
	if !f.asJSON {
		fmt.Fprintf(out, "%d pods restored, %d not, %d changed by others since.\n", restored, open, changed)
	}
	if err != nil {
		return err
	}
	if guarded {
		if err := f.finish(cmd, cluster, rules, outcomes); err != nil {
			return err
		}
	}
	if open > 0 {
		return exit.New(exit.Failed, "the table says why; run it again for those", "%d pods are not restored", open)
	}
	return nil
}

// finish deletes the policies where nothing is left that they keep.
func (f *overcommitFlags) finish(cmd *cobra.Command, cluster client.Client, rules *overcommit.Rules, outcomes incluster.Outcomes) error {
	say := cmd.OutOrStdout()
	if f.asJSON {
		say = cmd.ErrOrStderr()
	}
	if n := outcomes.Count(incluster.StateNoRoom, incluster.StateLeft, incluster.StateFailed); n > 0 {
		fmt.Fprintf(say, "The policies stay, and lower nothing: they keep the originals of %d pods.\n", n)
		return nil
	}
	made, err := incluster.Delete(cmd.Context(), cluster, rules.Manifests())
	writeMade(say, made, "")
	return err
}

// restoring are the rules by which originals are believed: those of the policies that have kept them, or those of the flags.
func (f *overcommitFlags) restoring(cmd *cobra.Command, cluster client.Client) (rules *overcommit.Rules, guarded bool, err error) {
	policies, err := incluster.Read(cmd.Context(), cluster)
	if err != nil {
		return nil, false, err
	}
	lowering, err := policies.Lowering()
	switch {
	case err != nil && !f.unguarded:
		return nil, false, err
	case lowering != nil && !f.plan:
		return nil, false, exit.New(exit.Failed, "end it first, by 'kubectl temper overcommit remove'", "the policy is in force, and new pods would still be lowered")
	}
	rules, err = policies.Guarding()
	if rules != nil && err == nil {
		if !f.plan {
			err = notKept(rules)
		}
		return rules, true, err
	}
	if !f.unguarded && (!f.plan || len(f.namespaces) == 0) {
		if err == nil {
			err = fmt.Errorf("this cluster has no policy %s: nothing has kept users from writing originals", overcommit.KeepName)
		}
		return nil, false, exit.New(exit.Failed, "--unguarded believes them all the same; give --namespaces, --factor and --floor as the policy had them", "%w", err)
	}
	rules, err = f.rules(&snapshot.Snapshot{}, io.Discard)
	return rules, false, err
}
