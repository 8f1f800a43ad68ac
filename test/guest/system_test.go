//go:build guest

package guest

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the system may use of a node may be more than a CPU, and critical may have no other CPU.
func criticalHasItsCPUBesideSystem(t *testing.T) {
	eachCrowd(t, criticalBesideSystem)
}

func criticalBesideSystem(t *testing.T, _ int) {
	cpu := runtime.NumCPU() - 1
	controlledCgroup(t, "/system.slice/some.service")
	had := used(t, second(), pinned(t, "/critical", cpu), pinned(t, "/system.slice/some.service", cpu))
	t.Logf("critical has %.3f of the CPU, system %.3f", had[0], had[1])
	if had[0] < 0.2 || had[1] < 0.3 {
		t.Error("one of them is kept from the CPU")
	}
}

// What it does at once is a turn or two.
func burstsOfSystemLeaveTimeForCritical(t *testing.T) {
	controlledCgroup(t, "/system.slice/some.service")
	system := pinned(t, "/system.slice/some.service", 0)[0]
	ctx, cancel := context.WithCancel(t.Context())
	var toggling sync.WaitGroup
	toggling.Go(func() {
		for ctx.Err() == nil {
			_ = unix.Kill(system.pid, unix.SIGCONT)
			time.Sleep(20 * time.Millisecond)
			_ = unix.Kill(system.pid, unix.SIGSTOP)
			time.Sleep(80 * time.Millisecond)
		}
	})
	before := system.cpuTime(t)
	late := measureLateness(t, 1000)
	used := system.cpuTime(t) - before
	cancel()
	toggling.Wait()
	t.Logf("critical late by %v, beside %v of system in bursts of 20ms", late, used)
	if used < 100*time.Millisecond {
		t.Error("there were no bursts")
	}
	if most := 15 * time.Millisecond; late.longest > most {
		t.Errorf("it is late by %v, more than %v", late.longest, most)
	}
}
