package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/observe"
)

func newObserveCommand() *cobra.Command {
	var root string
	var seconds float64
	var background, critical []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "observe --background CGROUP --critical CGROUP",
		Short: "Measure from outside for how long background runs where critical work waits",
		Long: `Record the kernel's scheduling events for some seconds, then say for how long a CPU ran a task of the
background cgroups while a task of the critical ones, which that CPU may run, was waiting. It works under
any scheduler and asks none: compare Temper with stock on your own node. Recording costs each context
switch about a microsecond. Tasks that come and go within a second may stay unknown; they are counted. A cgroup of which no
task was seen is named; without a task of both, there are no figures (null in JSON).`,
		Example: `  sudo temper observe --background /batch.slice --critical /web.slice
  sudo temper observe --seconds 30 --background /batch --critical /web --critical /db --json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			node := host.Root(root)
			roles, err := observedRoles(node, background, critical)
			if err != nil {
				return err
			}
			if seconds <= 0 {
				return exit.New(exit.Usage, "", "--seconds must be above 0, not %v", seconds)
			}
			if os.Geteuid() != 0 {
				return exit.New(exit.NotRoot, "use sudo", "recording the kernel's events takes root")
			}
			named := observe.NewNamed(roles)
			tasks := &observe.Tasks{Root: node, RoleOf: named.RoleOf, Found: map[int]observe.Task{}}
			trace, err := observe.Record(cmd.Context(), node, tasks, time.Duration(seconds*float64(time.Second)))
			if cmd.Context().Err() != nil {
				return cli.Interrupted()
			}
			if err != nil {
				return err
			}
			answer := named.Answer(observe.Summarize(trace, tasks.Found, 0))
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), answer)
			}
			return writeObserved(cmd.OutOrStdout(), answer)
		},
	}
	cmd.Flags().Float64Var(&seconds, "seconds", 10, "how long to record")
	cmd.Flags().StringArrayVar(&background, "background", nil, "cgroup whose tasks must not keep others waiting; may be repeated")
	cmd.Flags().StringArrayVar(&critical, "critical", nil, "cgroup whose tasks must not wait for background; may be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	addRootFlag(cmd, &root)
	return cmd
}

func observedRoles(node host.Root, background, critical []string) (map[string]observe.Role, error) {
	if len(background) == 0 || len(critical) == 0 {
		return nil, exit.New(exit.Usage, "see 'temper observe --help'", "name a --background and a --critical cgroup")
	}
	roles := map[string]observe.Role{}
	for role, list := range map[observe.Role][]string{observe.Background: background, observe.Higher: critical} {
		for _, cg := range list {
			if err := cgroup.ValidPath(cg); err != nil {
				return nil, exit.New(exit.Usage, "", "%w", err)
			}
			if _, err := cgroup.ID(node, cg); err != nil {
				return nil, exit.New(exit.Config, "", "no cgroup %s: %w", cg, err)
			}
			if other, taken := roles[cg]; taken && other != role {
				return nil, exit.New(exit.Usage, "", "cgroup %s is both background and critical", cg)
			}
			roles[cg] = role
		}
	}
	return roles, nil
}

func writeObserved(w io.Writer, a observe.Answer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%.1f s, %d events\n", a.Seconds, a.Events)
	for _, cg := range a.Unseen {
		fmt.Fprintf(&text, "no task of %s was seen\n", host.Printable(cg))
	}
	if a.Known {
		fmt.Fprintf(&text, `background ran while critical work waited: %d times, %.3f ms in all (%.4f %% of the time)
each: p50 %.0f us, p99 %.0f us, longest %.0f us
`, a.Violations, a.TotalUS/1e3, a.TotalUS/1e4/a.Seconds, a.P50US, a.P99US, a.MaxUS)
		if a.Share != nil {
			fmt.Fprintf(&text, "background had %.2f %% of the CPU time that critical work left and that it could have used\n", 100**a.Share)
		} else {
			fmt.Fprintln(&text, "background did not run, and no CPU idled that it could have used")
		}
	}
	if l := a.Longest; l != nil {
		fmt.Fprintf(&text, "the longest, after %.6f s: CPU %d ran %s while %s waited\n", l.AtSeconds, l.CPU, l.Background, l.Waiting)
	}
	if a.UnknownTasks > 0 {
		fmt.Fprintf(&text, "left out: %d tasks that came and went unseen\n", a.UnknownTasks)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
