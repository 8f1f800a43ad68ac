package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/capacity/overcommit"
	"temper.dev/temper/internal/capacity/overcommit/incluster"
	"temper.dev/temper/internal/capacity/snapshot"
)

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
		Args: cli.NoArgs,
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
