//go:build guest

package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// An interrupted native demo leaves the host as it was: no cgroup, no scheduler, no process, no file,
// and the preemption mode of before.
func TestInterruptedNativeDemoLeavesNothing(t *testing.T) {
	const preempt = "/sys/kernel/debug/sched/preempt"
	before := read(t, preempt)
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command("temper-lab", "demo", "--native", "--scale", "0.02", "--out", out)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a spinner", func() bool { return host.Exists("/run/temper-demo/work") })
	eventually(t, "the demo measures", func() bool { return strings.Contains(read(t, log.Name()), "chain measuring") })
	// The seed runs the arm temper first.
	eventually(t, "a window", func() bool { return strings.Contains(read(t, log.Name()), "chain, temper, ") })
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != exit.Interrupted {
		t.Errorf("left with %d:\n%s", cmd.ProcessState.ExitCode(), read(t, log.Name()))
	}
	for _, path := range []string{"/sys/fs/cgroup/temper-demo", "/run/temper-demo", out} {
		if host.Exists(path) {
			t.Errorf("%s is left", path)
		}
	}
	if s := kernel(t); s.Enabled() {
		t.Errorf("a scheduler is left: %+v", s)
	}
	if after := read(t, preempt); after != before {
		t.Errorf("preemption was %q and is %q", before, after)
	}
}
