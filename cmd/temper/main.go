// Command temper runs, watches, checks and measures the Temper scheduler on one node.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/exit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "temper:", err)
	}
	os.Exit(exit.StatusOf(err))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "temper",
		Short: "Run latency-critical and best-effort work side by side",
		Long: `Temper runs latency-critical services and best-effort work side by side on one node.
The services keep the tail latency that they have alone; the best-effort work gets the CPU time they leave.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.New(exit.Usage, "see '"+cmd.CommandPath()+" --help'", "%w", err)
	})
	root.AddCommand(newAgentCommand(), newRunCommand(), newStatusCommand(), newMetricsCommand(), newDoctorCommand(), newObserveCommand())
	root.AddCommand(newDemoCommand())
	root.AddCommand(newLabCommand())
	root.AddCommand(newBenchCommand())
	return root
}
