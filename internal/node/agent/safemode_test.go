package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/host"
)

// Whoever mistypes where the node is must not be told that it is in safe mode.
func TestSafeModeOfNoNode(t *testing.T) {
	root := host.Root(t.TempDir() + "/nowhere")
	const want = "nowhere/etc: nothing was changed; name with --host-root"
	_, leave := LeaveSafeMode(root)
	for name, err := range map[string]error{"on": EnterSafeMode(t.Context(), root, "why"), "off": leave} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", name, err, want)
		}
	}
	if _, err := os.Stat(string(root)); !os.IsNotExist(err) {
		t.Errorf("it made %s", root)
	}
}

func TestSafeModeKeepsItsReason(t *testing.T) {
	file := filepath.Join(t.TempDir(), "safe-mode")
	for _, step := range []struct{ reason, want string }{
		{"", "\n"},
		{"p99 odd", "p99 odd\n"},
		{"", "p99 odd\n"},
		{"an upgrade", "an upgrade\n"},
	} {
		if err := writeReason(file, step.reason); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != step.want {
			t.Errorf("%q: %q, %v; want %q", step.reason, got, err, step.want)
		}
	}
}
