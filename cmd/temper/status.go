package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/status"
)

func newStatusCommand() *cobra.Command {
	var root string
	var asJSON bool
	var cpuStatOf string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say what is in force on this node, and why",
		Long: `Say which rung of the fallback ladder is in force and why, what each tier has used and how long its tasks
waited, for how long background ran on while a higher tier waited, and how scx_temper ended before.

  scx        scx_temper is attached
  cpu.idle   stock scheduler, with cpu.idle=1 on background cgroups
  observe    stock scheduler, nothing is changed

It works without an agent too. Counters and histograms need root. Percentiles are upper bounds. Of each tier:

  QUEUED            times that a task was queued
  PREEMPTED         tasks that were interrupted for a higher tier
  STARVATION TURNS  short turns out of order, so that nothing starves behind a higher tier
  AGED              tasks that were put to the front of their queue after a long wait
  BOOSTED           times that a task ran out of order, since others waited, or might, for a kernel lock that it held

The kernel counts no periods of a CPU limit while any sched_ext scheduler is attached. --cpu-stat prints a cgroup's
cpu.stat with those that Temper kept added: for tools that warn of throttling.`,
		Example: `  temper status
  temper status --json | jq '.tiers[] | {tier, wait_p99_us}'
  temper status --cpu-stat /kubepods.slice/kubepods-pod1234.slice`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := status.Now(host.Root(root))
			if err != nil {
				return err
			}
			if cpuStatOf != "" {
				text, err := s.CPUStat(host.Root(root), cpuStatOf)
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), s)
			}
			s.Write(cmd.OutOrStdout(), styleOf(cmd.OutOrStdout()))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&cpuStatOf, "cpu-stat", "", "print this cgroup's cpu.stat, with what Temper counted for its limit")
	cli.Exclusive(cmd, "json", "cpu-stat")
	addRootFlag(cmd, &root)
	return cmd
}

func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func styleOf(w io.Writer) status.Style { return status.Style{Color: cli.Colours(w)} }
