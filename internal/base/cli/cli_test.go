package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/exit"
)

func TestPreparedCommandRuns(t *testing.T) {
	ran := false
	root := Prepare(&cobra.Command{Use: "program", RunE: func(*cobra.Command, []string) error { ran = true; return nil }})
	root.SetArgs(nil)
	if err := root.Execute(); err != nil || !ran {
		t.Errorf("%v; it has run: %t", err, ran)
	}
}

func TestUnknownCommandIsAUsageError(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"lab"}, ""},
		{[]string{"status"}, ""},
		{[]string{"stauts"}, `unknown command "stauts" for "program"; did you mean 'program status'?`},
		{[]string{"frob"}, `unknown command "frob" for "program"; see 'program --help'`},
		{[]string{"lab", "exce"}, `unknown command "exce" for "program lab"; did you mean 'program lab exec'?`},
		{[]string{"lab", "frob"}, `unknown command "frob" for "program lab"; see 'program lab --help'`},
		{[]string{"toap"}, `unknown command "toap" for "program"; did you mean 'program top'?`},
		{[]string{"nope"}, `unknown command "nope" for "program"; see 'program --help'`},
		{[]string{"help", "lab", "exec"}, ""},
		{[]string{"help", "stauts"}, `unknown command "stauts" for "program"; did you mean 'program status'?`},
		{[]string{"help", "lab", "frob"}, `unknown command "frob" for "program lab"; see 'program lab --help'`},
		{[]string{"frob", "--json"}, "unknown flag: --json; see 'program --help'"},
	} {
		none := func(*cobra.Command, []string) error { return nil }
		root, lab := Prepare(&cobra.Command{Use: "program"}), Group(&cobra.Command{Use: "lab"})
		lab.AddCommand(&cobra.Command{Use: "exec", RunE: none})
		root.AddCommand(&cobra.Command{Use: "status", RunE: none}, &cobra.Command{Use: "top", RunE: none}, lab)
		root.SetArgs(test.args)
		err := Run(t.Context(), root, null)
		got, status := "", 0
		if err != nil {
			got, status = err.Error(), exit.StatusOf(err)
		}
		if wantStatus := map[bool]int{false: 0, true: exit.Usage}[test.want != ""]; got != test.want || status != wantStatus {
			t.Errorf("%q: %q, status %d; want %q, status %d", test.args, got, status, test.want, wantStatus)
		}
	}
}

// Programs with and without commands refuse a shell that they have no completions for, and write those of the others.
func TestCompletion(t *testing.T) {
	const cure = "; name one of bash, fish, powershell, zsh"
	run := func(*cobra.Command, []string) error { return nil }
	for name, program := range map[string]func() *cobra.Command{
		"with commands": func() *cobra.Command {
			root := Prepare(&cobra.Command{Use: "program"})
			root.AddCommand(&cobra.Command{Use: "status", RunE: run})
			return root
		},
		"without": func() *cobra.Command {
			return Prepare(&cobra.Command{Use: "program", Args: NoArgs, RunE: run})
		},
	} {
		for _, c := range []struct {
			args   []string
			want   string // the failure
			status int
			out    string
		}{
			{[]string{"completion"}, "no shell is named" + cure, exit.Usage, ""},
			{[]string{"completion", "tcsh"}, `there are no completions for "tcsh"` + cure, exit.Usage, ""},
			{[]string{"completion", "bash"}, "", exit.OK, "# bash completion"},
			{[]string{"completion", "zsh"}, "", exit.OK, "#compdef program"},
			{[]string{"--help"}, "", exit.OK, "Usage:"},
		} {
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			root := program()
			root.SetArgs(c.args)
			err = Run(t.Context(), root, out)
			out.Close()
			failure := ""
			if err != nil {
				failure = err.Error()
			}
			said, readErr := os.ReadFile(out.Name())
			if readErr != nil {
				t.Fatal(readErr)
			}
			if failure != c.want || exit.StatusOf(err) != c.status || !strings.HasPrefix(string(said), c.out) || c.out == "" && len(said) > 0 {
				t.Errorf("%s, %q: %q, status %d, says %.80q; want %q, status %d, %q", name, c.args, failure, exit.StatusOf(err), said, c.want, c.status, c.out)
			}
			if c.args[0] == "--help" && strings.Contains(string(said), "completion") != (name == "with commands") {
				t.Errorf("%s: the help is\n%s", name, said)
			}
		}
	}
}

func TestHowACommandEnds(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	say := func(cmd *cobra.Command, _ []string) error { fmt.Fprintln(cmd.OutOrStdout(), "said"); return nil }
	fail := func(err error) func(*cobra.Command, []string) error {
		return func(*cobra.Command, []string) error { return err }
	}
	for name, c := range map[string]struct {
		ctx  context.Context
		run  func(*cobra.Command, []string) error
		out  string
		want string
		exit int
	}{
		"it has said all":              {t.Context(), say, os.DevNull, "", exit.OK},
		"its output is lost":           {t.Context(), say, "/dev/full", "cannot write: write /dev/full: no space left on device", exit.Failed},
		"it fails, and output is lost": {t.Context(), fail(errors.New("why")), "/dev/full", "why", exit.Failed},
		"its user ends it":             {interrupted, fail(fmt.Errorf("fetch: %w", context.Canceled)), os.DevNull, "interrupted", exit.Interrupted},
		"and it says more of that":     {interrupted, fail(exit.New(exit.Interrupted, "go on", "%w", context.Canceled)), os.DevNull, "context canceled; go on", exit.Interrupted},
		"something of its own ends":    {t.Context(), fail(context.Canceled), os.DevNull, "context canceled", exit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := os.OpenFile(c.out, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			root := Prepare(&cobra.Command{Use: "program", RunE: c.run})
			root.SetArgs(nil)
			err = Run(c.ctx, root, out)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want || exit.StatusOf(err) != c.exit {
				t.Errorf("%q, status %d; want %q, status %d", got, exit.StatusOf(err), c.want, c.exit)
			}
		})
	}
}
