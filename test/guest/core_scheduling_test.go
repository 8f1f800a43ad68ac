//go:build guest

package guest

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCoreSchedulingKeepsTheOrder: tasks that trust each other alone share a core, so a CPU chooses for its siblings, too.
// It wants a kernel that has core scheduling (scripts/upstream.sh), and two threads a core: 'make kernels' has both.
func TestCoreSchedulingKeepsTheOrder(t *testing.T) {
	cores := topology(t)
	if len(cores[0]) < 2 {
		t.Fatal("a core has one thread: run it with --topology")
	}
	limit(t, "/limited", 20*time.Millisecond, 100*time.Millisecond)
	attachTiers(t)
	shareCore(t, os.Getpid(), prSchedCoreCreate)
	trusted := func(group []*spinner) []*spinner {
		t.Helper()
		for _, s := range group {
			shareCore(t, s.pid, prSchedCoreShareTo)
		}
		return group
	}
	sibling := last(cores[0])
	critical, background := trusted(pinned(t, "/critical", 0)), trusted(pinned(t, "/background", sibling))
	checkWhoRuns(t, "a background task beside a critical one that trusts it", []bool{true, true}, critical, background)

	above := trusted(pinned(t, "/critical", sibling))
	checkWhoRuns(t, "a critical task on its CPU", []bool{true, false, true}, critical, background, above)
	above[0].end()

	limited := trusted(spin(t, "/limited", 2*runtime.NumCPU()))
	got := used(t, 4*second(), limited, critical)
	if ratio := got[0] / got[1]; ratio < 0.1 || ratio > 0.25 {
		t.Errorf("a limit of 0.2 CPUs: used %.3f of what a task alone on its CPU did", ratio)
	}
	if s := kernel(t); !s.IsTemper() {
		t.Errorf("the kernel says %+v", s)
	}
}

// Of linux/prctl.h.
const (
	prSchedCoreCreate  = 1
	prSchedCoreShareTo = 2 // what this process was given
	wholeProcess       = 1
)

func shareCore(t *testing.T, pid, how int) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SCHED_CORE, uintptr(how), uintptr(pid), wholeProcess, 0); err != nil {
		t.Fatalf("prctl(PR_SCHED_CORE, %d, %d): %v", how, pid, err)
	}
}
