// Package clitest tries out what a program's commands refuse.
package clitest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
)

// foreign are the words of cobra for what it refuses by itself.
var foreign = []string{"arg(s)", "invalid argument", "in the group"}

// CheckUsage gives every command of a program arguments of each number, an unknown flag, and flags that exclude each other.
// What it refuses is a usage error in our words. No command does its work.
func CheckUsage(t *testing.T, program func() *cobra.Command) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	run := func(args []string) (*cobra.Command, error) {
		root := program()
		disarm(root)
		root.SetArgs(args)
		err := cli.Run(t.Context(), root, null)
		return root, err
	}
	whole, err := run([]string{"--help"}) // which also makes help and completion
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range commands(whole) {
		if cmd.Args == nil && !strings.Contains(cmd.Use, "...") {
			t.Errorf("%s takes any arguments, and its use names none", cmd.CommandPath())
		}
		for _, wrong := range wrongs(cmd) {
			args := slices.Concat(strings.Fields(cmd.CommandPath())[len(strings.Fields(whole.CommandPath())):], wrong)
			_, err := run(args)
			if err == nil {
				continue
			}
			text := err.Error()
			ours := !slices.ContainsFunc(foreign, func(words string) bool { return strings.Contains(text, words) }) &&
				(!strings.Contains(text, "unknown command") || cmd.HasSubCommands() || cmd.Name() == "help")
			if !ours || exit.StatusOf(err) != exit.Usage {
				t.Errorf("%s %q: %s, status %d; want our words, and status %d", whole.CommandPath(), args, text, exit.StatusOf(err), exit.Usage)
			}
		}
	}
}

// disarm has commands do nothing.
func disarm(root *cobra.Command) {
	for _, cmd := range commands(root) {
		if cmd.RunE != nil {
			cmd.RunE = func(*cobra.Command, []string) error { return nil }
		}
	}
}

func commands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, cmd := range root.Commands() {
		all = append(all, commands(cmd)...)
	}
	return all
}

// wrongs are arguments of which a command may refuse some.
func wrongs(cmd *cobra.Command) [][]string {
	all := [][]string{nil, {"x"}, {"x", "x"}, {"x", "x", "x"}, {"--no-such-flag"}}
	groups := map[string][]string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		for _, group := range f.Annotations["cobra_annotation_mutually_exclusive"] {
			given := "--" + f.Name
			if f.NoOptDefVal == "" {
				given += "=" + f.DefValue
			}
			groups[group] = append(groups[group], given)
		}
	})
	for _, flags := range groups {
		all = append(all, flags)
	}
	return all
}
