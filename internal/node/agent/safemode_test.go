package agent

import (
	"os"
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
