package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/exit"
)

// NoArgs takes no argument.
func NoArgs(cmd *cobra.Command, args []string) error { return Args()(cmd, args) }

// Args takes exactly these arguments, named as the command's use names them.
func Args(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return misused(cmd, "%s is missing", names[len(args)])
		case len(args) > len(names):
			return misused(cmd, "%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

// AtLeast takes this argument and any that follow.
func AtLeast(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return misused(cmd, "%s is missing", name)
		}
		return nil
	}
}

// OneOf takes one of the command's ValidArgs.
func OneOf(cmd *cobra.Command, args []string) error {
	name := strings.Join(cmd.ValidArgs, " or ")
	if err := Args(name)(cmd, args); err != nil {
		return err
	}
	if !slices.Contains(cmd.ValidArgs, args[0]) {
		return misused(cmd, "%q is not %s", args[0], name)
	}
	return nil
}

// Exclusive has a command refuse two flags together. It takes the place of its PreRunE.
func Exclusive(cmd *cobra.Command, one, other string) {
	cmd.MarkFlagsMutuallyExclusive(one, other) // for completion; it is asked after PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed(one) && cmd.Flags().Changed(other) {
			return misused(cmd, "--%s and --%s exclude each other", one, other)
		}
		return nil
	}
}

func misused(cmd *cobra.Command, format string, args ...any) error {
	return exit.New(exit.Usage, "usage: "+cmd.UseLine()+"; see '"+cmd.CommandPath()+" --help'", format, args...)
}
