// Command temper runs, watches and checks the Temper scheduler on one node.
package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper"
	"temper.dev/temper/internal/base/cli"
)

func main() { cli.Main(newRootCommand()) }

func newRootCommand() *cobra.Command {
	root := cli.Prepare(&cobra.Command{
		Use:   "temper",
		Short: "Run latency-critical and background work side by side",
		Long: `Temper runs latency-critical services and background work side by side on one node.
The services keep the tail latency that they have alone; the background work gets the CPU time they leave.`,
	})
	root.AddCommand(newAgentCommand(), newRunCommand(), newStatusCommand(), newTopCommand(), newMetricsCommand(), newDoctorCommand(), newObserveCommand(), newSafeModeCommand())
	cli.HasVersion(root, temper.Identity())
	return root
}
