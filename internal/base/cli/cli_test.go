package cli

import (
	"io"
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
		{[]string{"frob", "--json"}, "unknown flag: --json; see 'program --help'"},
	} {
		none := func(*cobra.Command, []string) error { return nil }
		root, lab := Prepare(&cobra.Command{Use: "program"}), Group(&cobra.Command{Use: "lab"})
		lab.AddCommand(&cobra.Command{Use: "exec", RunE: none})
		root.AddCommand(&cobra.Command{Use: "status", RunE: none}, lab)
		root.SetArgs(test.args)
		root.SetOut(io.Discard)
		err := root.Execute()
		got, status := "", 0
		if err != nil {
			got, status = err.Error(), exit.StatusOf(err)
		}
		if wantStatus := map[bool]int{false: 0, true: exit.Usage}[test.want != ""]; got != test.want || status != wantStatus {
			t.Errorf("%q: %q, status %d; want %q, status %d", test.args, got, status, test.want, wantStatus)
		}
	}
}
