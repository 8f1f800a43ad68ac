// Command kubectl-temper is 'kubectl temper': what Temper does to a cluster's pods.
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
		fmt.Fprintln(os.Stderr, "kubectl temper:", err)
	}
	os.Exit(exit.StatusOf(err))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-temper",
		Short:         "See what Temper does to a cluster's pods",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl temper"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.New(exit.Usage, "see '"+cmd.CommandPath()+" --help'", "%w", err)
	})
	root.AddCommand(newExplainCommand())
	return root
}
