package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/status"
)

func newAgentCommand() *cobra.Command {
	var root, path, loader, metrics string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Keep this node's tiers in force",
		Long: `The agent starts and supervises scx_temper, gives cgroups and systemd units their tiers as the
configuration says, and follows them as they come and go. Where scx_temper cannot be attached, the node
falls to cpu.idle=1 on background cgroups, and the agent climbs back when it can. See 'temper status'.

Signals: SIGTERM ends it and detaches the scheduler. SIGHUP reads the configuration again. SIGUSR1 ends it,
but leaves the scheduler attached for the next agent (an upgrade without a gap).`,
		Example: `  temper agent                            # with /etc/temper/temper.yaml
  temper agent --config ./temper.yaml
  temper agent --metrics localhost:9770
  systemctl reload temper                 # after a change of the configuration`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needRoot("the agent"); err != nil {
				return err
			}
			signals := make(chan os.Signal, 4)
			signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR1)
			a, err := agent.NewLocal(host.Root(root), path, loader, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if metrics != "" {
				if err := status.Serve(cmd.Context(), metrics, host.Root(root)); err != nil {
					return err
				}
			}
			return a.Run(cmd.Context(), signals)
		},
	}
	cmd.Flags().StringVar(&path, "config", config.DefaultPath, "the configuration `FILE`")
	cmd.Flags().StringVar(&loader, "loader", "", "`PATH` of scx_temper (default: next to temper, else in PATH)")
	cmd.Flags().StringVar(&metrics, "metrics", "", "`ADDRESS` to serve metrics for Prometheus at, as /metrics (default: none)")
	addRootFlag(cmd, &root)
	return cmd
}

func addRootFlag(cmd *cobra.Command, root *string) {
	*root = "/"
	cmd.Flags().Var((*rootFlag)(root), "host-root", "`DIR` where the node's file system is mounted")
}

// rootFlag is a folder with the node's /proc.
type rootFlag string

func (r *rootFlag) String() string { return string(*r) }
func (r *rootFlag) Type() string   { return "string" }

func (r *rootFlag) Set(dir string) error {
	if !host.Exists(filepath.Join(dir, "proc")) {
		return fmt.Errorf("there is no %s: name where the node's file system is mounted", filepath.Join(dir, "proc"))
	}
	*r = rootFlag(dir)
	return nil
}

func needRoot(who string) error {
	if os.Geteuid() != 0 {
		return exit.New(exit.NotRoot, "run it with sudo", "%s must run as root", who)
	}
	return nil
}
