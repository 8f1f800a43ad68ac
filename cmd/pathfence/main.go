// Command pathfence watches the fences of services.
package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper/internal/cli"
)

func main() { cli.Main(newRootCommand()) }

func newRootCommand() *cobra.Command {
	root := cli.Prepare(&cobra.Command{Use: "pathfence", Short: "Watch the fences of services"})
	root.AddCommand(newTopCommand())
	return root
}
