// Command pathfence watches the fences of services, and profiles their classes.
package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper"
	"temper.dev/temper/internal/base/cli"
)

func main() { cli.Main(newRootCommand()) }

func newRootCommand() *cobra.Command {
	root := cli.Prepare(&cobra.Command{Use: "pathfence", Short: "See what a fence does, watch those of services, and find what limits they start from"})
	root.AddCommand(newDemoCommand(), newTopCommand(), newProfileCommand())
	cli.HasVersion(root, temper.Release())
	return root
}
