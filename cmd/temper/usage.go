package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper/internal/exit"
)

// usageArgs gives a wrong number of arguments the status of a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exit.New(exit.Usage, "see '"+cmd.CommandPath()+" --help'", "%w", err)
		}
		return nil
	}
}

func interrupted() error { return exit.New(exit.Interrupted, "", "interrupted") }
