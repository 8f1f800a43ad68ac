package main

import (
	"os"
	"path/filepath"
	"testing"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
)

// Whoever names a file that is not there is told which, in one line.
func TestFilesThatAreNotThere(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const cure = "; give --kubeconfig, or set KUBECONFIG"
	for _, c := range []struct {
		name, kubeconfig string
		args             []string
		status           int
		want             string
	}{
		{"KUBECONFIG", none, []string{"status"}, exit.Config, "no kubeconfig names a cluster: there is no file " + none + cure},
		{"one of KUBECONFIG", empty + ":" + none, []string{"status"}, exit.Config, "no kubeconfig names a cluster: there is no file " + none + cure},
		{"an empty one", empty, []string{"status"}, exit.Config, "no kubeconfig names a cluster" + cure},
		{"--kubeconfig", empty, []string{"status", "--kubeconfig", none}, exit.Config, "there is no kubeconfig: stat " + none + ": no such file or directory" + cure},
		{"advise -f", empty, []string{"advise", "-f", none}, exit.Usage, "stat " + none + ": no such file or directory; give -f a file or a folder that is there"},
		{"explain -f", empty, []string{"explain", "-f", none}, exit.Usage, "lstat " + none + ": no such file or directory; give -f a file or a folder that is there"},
		{"a folder for --html", empty, []string{"advise", "--html", none + "/a.html"}, exit.Usage,
			"--html " + none + "/a.html: there is no folder " + none + "; make it, or name another"},
		{"a folder for --save", empty, []string{"advise", "--save", none + "/a.json"}, exit.Usage,
			"--save " + none + "/a.json: there is no folder " + none + "; make it, or name another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.kubeconfig)
			t.Setenv(inCluster, "")
			root := newRootCommand()
			root.SetArgs(c.args)
			err := cli.Run(t.Context(), root, os.Stdout)
			if err == nil || err.Error() != c.want || exit.StatusOf(err) != c.status {
				t.Errorf("%v, status %d; want %s, status %d", err, exit.StatusOf(err), c.want, c.status)
			}
		})
	}
}
