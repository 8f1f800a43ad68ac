//go:build guest

package guest

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// What critical and background share, by locks whose owner the scheduler does not hear of (lab/guest/load/share.c). Beside
// background alone, and beside standard work on all CPUs. The stock kernel has background in a cgroup with cpu.idle.
func TestNightlySharedLocks(t *testing.T) {
	for _, lock := range []string{"none", "mutex", "inheriting", "file", "cgroup"} {
		for _, beside := range []string{"/background", "/standard"} {
			t.Run(lock+" beside "+beside[1:], func(t *testing.T) {
				for _, cg := range cgroupsOfTiers {
					controlledCgroup(t, cg)
				}
				write(t, root.Cgroup("/background/cpu.idle"), "1")
				stock := askForLock(t, lock, beside)
				write(t, root.Cgroup("/background/cpu.idle"), "0")
				joinSystem(t)
				attach(t, tierFlags()...)
				ours := askForLock(t, lock, beside)
				t.Logf("stock: %v", stock)
				t.Logf("temper: %v", ours)
				if most := max(mostShared, 2*stock.longest); ours.longest > most {
					t.Errorf("critical had it after %v, more than %v", ours.longest, most)
				}
			})
		}
	}
}

// mostShared is two turns of who has the lock, which has 0.25 ms in 250 ms and CPU.
const mostShared = 500 * time.Millisecond

// askForLock has a critical task ask often for what a background task has half of the time.
func askForLock(t *testing.T, lock, beside string) (took lateness) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lock")
	if lock == "cgroup" {
		file = root.Cgroup("/background")
		for _, child := range []string{"/background/a", "/background/b"} {
			makeCgroup(t, child)
		}
	}
	holder := &spinner{cmd: exec.Command("share", lock, file)}
	holder.start(t)
	if _, err := bufio.NewReader(holder.works).ReadString('\n'); err != nil {
		t.Fatalf("%s: it has not begun: %v", lock, err)
	}
	if lock != "cgroup" { // where it moves itself
		holder.moveTo(t, "/background")
	}
	defer holder.end()
	for _, s := range spin(t, beside, runtime.NumCPU()) {
		defer s.end()
	}
	out := outputIn(t, "/critical", "share", lock, file, strconv.Itoa(asks))
	if _, err := fmt.Sscan(string(out), &took.p50, &took.p99, &took.p999, &took.longest); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return took
}

const asks = 200
