package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/exit"
)

func TestArgs(t *testing.T) {
	for _, c := range []struct {
		takes cobra.PositionalArgs
		args  []string
		want  string // before the usage; "": they are taken
	}{
		{NoArgs, nil, ""},
		{NoArgs, []string{"a"}, `"a" is one argument too many`},
		{Args("A", "B"), nil, "A is missing"},
		{Args("A", "B"), []string{"a"}, "B is missing"},
		{Args("A", "B"), []string{"a", "b"}, ""},
		{Args("A", "B"), []string{"a", "b", "c", "d"}, `"c" is one argument too many`},
		{AtLeast("FILE"), nil, "FILE is missing"},
		{AtLeast("FILE"), []string{"a", "b"}, ""},
		{OneOf, nil, "on or off is missing"},
		{OneOf, []string{"off"}, ""},
		{OneOf, []string{"maybe"}, `"maybe" is not on or off`},
		{OneOf, []string{"on", "off"}, `"off" is one argument too many`},
	} {
		cmd := &cobra.Command{Use: "program", ValidArgs: []string{"on", "off"}, Args: c.takes}
		want, status := "", exit.OK
		if c.want != "" {
			want, status = c.want+"; usage: program; see 'program --help'", exit.Usage
		}
		err := cmd.ValidateArgs(c.args)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || exit.StatusOf(err) != status {
			t.Errorf("%q: %q, status %d; want %q, status %d", c.args, got, exit.StatusOf(err), want, status)
		}
	}
}

func TestExclusive(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--json"}, ""},
		{[]string{"--sort", "cpu"}, ""},
		{[]string{"--json", "--sort", "cpu"}, "--json and --sort exclude each other; usage: program [flags]; see 'program --help'"},
	} {
		cmd := Prepare(&cobra.Command{Use: "program", RunE: func(*cobra.Command, []string) error { return nil }})
		cmd.Flags().Bool("json", false, "")
		cmd.Flags().String("sort", "", "")
		Exclusive(cmd, "json", "sort")
		cmd.SetArgs(c.args)
		got := ""
		err := cmd.Execute()
		if err != nil {
			got = err.Error()
		}
		if got != c.want || c.want != "" && exit.StatusOf(err) != exit.Usage {
			t.Errorf("%q: %q, status %d; want %q", c.args, got, exit.StatusOf(err), c.want)
		}
	}
}
