// Command kubectl-temper is 'kubectl temper': what Temper does to a cluster's pods.
package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper"
	"temper.dev/temper/internal/base/cli"
)

func main() { cli.Main(newRootCommand()) }

func newRootCommand() *cobra.Command {
	root := cli.Prepare(&cobra.Command{
		Use:         "kubectl-temper",
		Short:       "See what Temper does to a cluster's pods",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl temper"},
	})
	root.AddCommand(newPreflightCommand(), newExplainCommand(), newStatusCommand(), newTopCommand(), newFencesCommand(), newAdviseCommand(), newOvercommitCommand(), newConsolidateCommand(), newSafeModeCommand(), newBugtoolCommand())
	cli.HasVersion(root, temper.Identity())
	return root
}
