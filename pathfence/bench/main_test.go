package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"temper.dev/temper/internal/base/cli/clitest"
	"temper.dev/temper/internal/base/exit"
)

func TestUsageErrors(t *testing.T) { clitest.CheckUsage(t, newCommand) }

func TestUsage(t *testing.T) {
	folder := t.TempDir()
	node := write(t, folder, "node", "a program")
	other := write(t, folder, "other.json", `{"schema": "temper.dev/record/v1"}`)
	for what, c := range map[string]struct {
		status    int
		arguments []string
	}{
		"no program":              {exit.Usage, nil},
		"an unknown arm":          {exit.Usage, []string{"--node", node, "--arm", "none"}},
		"an unknown disturbance":  {exit.Usage, []string{"--node", node, "--disturbance", "noise"}},
		"a shop in C++":           {exit.Usage, []string{"--node", node, "--disturbance", "shops"}},
		"media without Java":      {exit.Usage, []string{"--node", node, "--disturbance", "media"}},
		"Java's instructions":     {exit.Usage, []string{"--node", node, "--java", node, "--instructions"}},
		"a program that is none":  {exit.Failed, []string{"--node", node, "--quick"}},
		"a record of other kind":  {exit.Failed, []string{"report", other}},
		"a record that is absent": {exit.Failed, []string{"report", filepath.Join(folder, "absent")}},
	} {
		cmd := newCommand()
		cmd.SetArgs(c.arguments)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); exit.StatusOf(err) != c.status {
			t.Errorf("%s: %v, status %d, not %d", what, err, exit.StatusOf(err), c.status)
		}
	}
}

// A record names all programs that its figures depend on.
func TestMachine(t *testing.T) {
	folder := t.TempDir()
	node, jar := write(t, folder, "node", "a program"), write(t, folder, "service.jar", "another")
	write(t, folder, "lib/temper-pathfence-core.jar", "a library")
	write(t, folder, "lib/libthrift.jar", "somebody else's, whose version the build names")
	for _, c := range []struct {
		jar  string
		want []string
	}{{"", []string{"node"}}, {jar, []string{"node", "service.jar", "temper-pathfence-core.jar"}}} {
		m, err := machine(node, c.jar)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(m.Hashes)); !slices.Equal(got, c.want) {
			t.Errorf("hashes of %q, not %q", got, c.want)
		}
		const sum = "d69ea8cda2433733c1ce02de65da8f48e6a3dbba6bb18876a2062908e54ef7cb" // sha256sum
		if m.Kernel == "" || m.CPUs == 0 || m.Hashes["node"] != sum {
			t.Errorf("%+v", m)
		}
	}
}

func write(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
