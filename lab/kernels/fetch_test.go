package kernels

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/cache"
)

// fetchFails runs the real apt, which must end with one line and the status.
func fetchFails(t *testing.T, c cache.Folder, status int) {
	t.Helper()
	_, err := Fetch(t.Context(), c, "6.18")
	if exit.StatusOf(err) != status || err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("status %d, want %d: %v", exit.StatusOf(err), status, err)
	}
	if left, _ := filepath.Glob(c.Path("kernels", "*")); len(left) > 0 {
		t.Errorf("a kernel seems to be there: %q", left)
	}
}

func TestFetchWithoutANetwork(t *testing.T) {
	t.Setenv("TEMPER_DEBIAN_MIRROR", "http://127.0.0.1:1/debian") // nobody listens there
	fetchFails(t, cache.Folder(t.TempDir()), exit.NoNetwork)
}

// The disk is a small one of its own, so the test needs root.
func TestFetchWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mount a tmpfs (as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 40<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	fetchFails(t, cache.Folder(dir), exit.NoDisk)
}
