package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/capacity/overcommit"
	"temper.dev/temper/internal/capacity/overcommit/incluster"
)

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
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.remove(cmd) },
	}
	f.addChangeFlags(cmd, "server: have the API server check it, and change nothing")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "end also what a CapacityPolicy keeps: where temper-controller is gone")
	f.addTimeout(cmd, "how long the API server may take to follow")
	return cmd
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
