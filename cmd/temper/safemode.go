package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/agent"
)

func newSafeModeCommand() *cobra.Command {
	var root, reason string
	cmd := &cobra.Command{
		Use:   "safe-mode on|off",
		Short: "Leave this node to the kernel's own scheduler, or end that",
		Long: `With 'on' the node has the kernel's own scheduler, within a second and until 'off': agents that start later leave it
alone, too, also after a reboot. CPU limits are kept by the kernel then, as everywhere. 'temper status' shows
the reason.

It does the same as writing and removing ` + agent.SafeModeFile + `, and waits until the scheduler has left. It needs
no agent, and no API server. An agent that has not acted within 10 seconds is done without.`,
		Example: `  temper safe-mode on --reason 'p99 of checkout is odd'
  temper safe-mode off`,
		ValidArgs: []string{"on", "off"},
		Args:      cli.OneOf,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needRoot("safe-mode"); err != nil {
				return err
			}
			if args[0] == "off" {
				return leaveSafeMode(cmd, host.Root(root))
			}
			if err := agent.EnterSafeMode(cmd.Context(), host.Root(root), reason); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "safe mode is on: no scheduler of Temper is attached")
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "what status shows; without it, a reason that was given before stays")
	addRootFlag(cmd, &root)
	return cmd
}

func leaveSafeMode(cmd *cobra.Command, root host.Root) error {
	was, err := agent.LeaveSafeMode(root)
	switch {
	case err != nil:
		return err
	case !was:
		fmt.Fprintln(cmd.OutOrStdout(), "safe mode was off")
	case agent.IsRunning(root):
		fmt.Fprintln(cmd.OutOrStdout(), "safe mode is off; 'temper status' says what the agent makes of it")
	default:
		fmt.Fprintln(cmd.OutOrStdout(), "safe mode is off; no agent runs")
	}
	return nil
}
