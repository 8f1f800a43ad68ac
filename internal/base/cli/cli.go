// Package cli is what the commands have in common: how they end, and how they fail.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"temper.dev/temper/internal/base/exit"
)

// Prepare makes a command's failures those of its caller: one line, with the status of a usage error for wrong flags.
func Prepare(root *cobra.Command) *cobra.Command {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.New(exit.Usage, "see '"+cmd.CommandPath()+" --help'", "%w", err)
	})
	if !root.Runnable() {
		Group(root)
	}
	return root
}

// Group makes a command one that only has others: it prints its help, and refuses what none of them is called.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		cure := "see '" + cmd.CommandPath() + " --help'"
		if like := suggestion(cmd, args[0]); like != "" {
			cure = "did you mean '" + cmd.CommandPath() + " " + like + "'?"
		}
		return exit.New(exit.Usage, cure, "unknown command %q for %q", args[0], cmd.CommandPath())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// suggestion is the name of a command that begins with a word, is one letter off, or two where both begin alike: 'nope' is
// not 'top'.
func suggestion(cmd *cobra.Command, word string) string {
	for _, distance := range []int{1, 2} {
		cmd.SuggestionsMinimumDistance = distance
		for _, name := range cmd.SuggestionsFor(word) {
			if distance == 1 || name[0] == word[0] {
				return name
			}
		}
	}
	return ""
}

// checkHelp makes 'help nope' a usage error: cobra's own prints the program's help, with status 0.
func checkHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil || len(rest) == 0 {
			return err
		}
		return cmd.ValidateArgs(rest)
	}
}

// checkCompletion makes a shell that is not named, or not known, a usage error: cobra prints help, with status 0.
func checkCompletion(root *cobra.Command) {
	alone := !root.HasSubCommands()
	root.InitDefaultCompletionCmd("completion") // now, and whatever was asked for: a program without commands has it, too
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	completion.Hidden = alone
	var shells []string
	for _, shell := range completion.Commands() {
		shells = append(shells, shell.Name())
		shell.Args = NoArgs
	}
	cure := "name one of " + strings.Join(shells, ", ")
	completion.Args = cobra.ArbitraryArgs
	completion.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exit.New(exit.Usage, cure, "no shell is named")
		}
		return exit.New(exit.Usage, cure, "there are no completions for %q", args[0])
	}
}

// HasVersion has a command say what it is: temper.Identity, or less. One that has others says it as a command, too. Not by
// cobra's own flag: its template for more than a version links text/template, which keeps every method of every type in the
// program, 2.6 MB of temper.
func HasVersion(root *cobra.Command, what string) {
	const about = "say which version this is, and what it was built from"
	asked := root.Flags().Bool("version", false, about)
	say := func(cmd *cobra.Command, _ []string) error {
		_, err := io.WriteString(cmd.OutOrStdout(), what)
		return err
	}
	run := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked {
			return say(cmd, args)
		}
		return run(cmd, args)
	}
	if root.HasSubCommands() {
		root.AddCommand(&cobra.Command{Use: "version", Short: "S" + about[1:], Args: NoArgs, RunE: say})
	}
}

// Main runs a program's command until it ends or is interrupted, says why it failed, and leaves with its status.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := Run(ctx, root, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.DisplayName(), err)
	}
	os.Exit(exit.StatusOf(err))
}

// Run runs a program's command. What it could not write is a failure, though it may not have looked; so is its user's end of
// it, by whatever name.
func Run(ctx context.Context, root *cobra.Command, out *os.File) error {
	written := &output{File: out}
	root.SetOut(written)
	checkCompletion(root)
	checkHelp(root)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil && written.err != nil:
		return fmt.Errorf("cannot write: %w", written.err)
	case ctx.Err() != nil && errors.Is(err, context.Canceled) && exit.StatusOf(err) == exit.Failed:
		return Interrupted()
	}
	return err
}

// output remembers why something could not be written.
type output struct {
	*os.File
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// IsTerminal says whether somebody looks at what is written.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// Draws says whether what is written may have escape sequences: on a terminal that knows some.
func Draws(w io.Writer) bool { return IsTerminal(w) && os.Getenv("TERM") != "dumb" }

// Colours says whether what is written may have colours: where NO_COLOR is not set (no-color.org).
func Colours(w io.Writer) bool { return Draws(w) && os.Getenv("NO_COLOR") == "" }

// Interrupted is the failure of a command that its user ended.
func Interrupted() error { return exit.New(exit.Interrupted, "", "interrupted") }
