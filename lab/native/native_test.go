package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/lab/assets"
)

func TestNativeRefusesAHostThatCannot(t *testing.T) {
	attached := fixture.Files{
		"/sys/kernel/sched_ext/state": "enabled\n", "/sys/kernel/sched_ext/root/ops": "lavd_1.0\n",
		"/sys/kernel/sched_ext/enable_seq": "1\n", "/sys/kernel/sched_ext/nr_rejected": "0\n",
	}
	free := fixture.Files{
		"/sys/kernel/sched_ext/state":      "disabled\n",
		"/sys/kernel/sched_ext/enable_seq": "1\n", "/sys/kernel/sched_ext/nr_rejected": "0\n",
	}
	for _, c := range []struct {
		name   string
		files  fixture.Files
		status int
	}{
		{"no sched_ext", nil, exit.NoSchedExt},
		{"another scheduler", attached, exit.OtherScheduler},
		{"no cgroup v2", free, exit.NoCgroup},
	} {
		if os.Geteuid() != 0 { // then that is the first thing that is wrong
			c.status = exit.NotRoot
		}
		err := Host{Root: fixture.Node(t, c.files)}.Check()
		if exit.StatusOf(err) != c.status || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got status %d, %v", c.name, exit.StatusOf(err), err)
		}
	}
}

func TestNativeDemoLeavesAnotherAlone(t *testing.T) {
	root := fixture.Node(t, fixture.Files{"/sys/fs/cgroup/temper-demo/cgroup.events": "populated 1\nfrozen 0\n"})
	h := Host{Root: root}
	if err := h.makeCgroup(); err == nil || !strings.Contains(err.Error(), "another native demo runs") {
		t.Errorf("got %v", err)
	}
}

// A kernel that cannot switch its preemption mode runs every arm in the one it has.
func TestNativePreemptionWithoutAChoice(t *testing.T) {
	if mode, err := setPreemption("", "full"); mode != "as built" || err != nil {
		t.Errorf("got %q, %v", mode, err)
	}
}

func TestNativeFindsProgramsThatWereBuiltBeforeThoseInPath(t *testing.T) {
	h := Host{Assets: assets.Folder(t.TempDir())}
	own := filepath.Join(string(h.Assets), "build/guest/sh")
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := h.find("sh"); err != nil || path == own {
		t.Errorf("got %s, %v", path, err)
	}
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := h.find("sh"); err != nil || path != own {
		t.Errorf("got %s, %v", path, err)
	}
	if _, err := h.find("no-such-program"); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("got %v", err)
	}
}

func TestRemoveTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "top")
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
