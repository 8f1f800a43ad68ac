package agent

import (
	"context"
	"errors"
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

// Whoever interrupts the wait for an agent is not told that the scheduler cannot be detached, and has not had it detached.
func TestInterruptedWaitForTheAgent(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	never := func(host.Root) (bool, error) { return false, nil }
	if err := waitUntilDetached(ctx, host.Root(t.TempDir()), never); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want that it was interrupted", err)
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
