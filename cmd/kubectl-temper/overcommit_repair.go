package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/capacity/overcommit/incluster"
)

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
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.repair(cmd) },
	}
	f.addChangeFlags(cmd, "client: list the pods, and change nothing")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
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
