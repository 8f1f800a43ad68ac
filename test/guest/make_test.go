//go:build guest

package guest

import (
	"encoding/binary"
	"os/exec"
	"strings"
	"testing"
)

// TestCgroupsAreKnownOnABusyNode: those who make cgroups, and those who start processes, are interrupted all the time. No cgroup
// is refused, and each process counts in the cgroup that it was started in.
func TestCgroupsAreKnownOnABusyNode(t *testing.T) {
	const processes = 200
	attachTiers(t)
	slots, given := openSlots(t), newReachScene(t, "/given", nil, 0)
	makers, _ := given.begin(t, "cgroups", "user")
	defer given.clear(t, makers)
	there := func() int { return len(strings.Fields(read(t, root.Cgroup("/given/a/cgroup.procs")))) }
	began := there()
	critical := newReachScene(t, "/critical/given", nil, 0)
	interrupters, _ := critical.begin(t, "nap", "user")
	defer critical.clear(t, interrupters)
	want, elsewhere := slots.of(t, "/standard"), 0
	for range processes {
		p := exec.Command("sleep", "10000")
		startIn(t, p, "/standard")
		state, offset := taskState(t, p.Process.Pid)
		if binary.NativeEndian.Uint32(state[offset("cgroup"):]) != want {
			elsewhere++
		}
		p.Process.Kill()
		p.Wait()
	}
	if elsewhere > 0 {
		t.Errorf("%d of %d processes that were started in /standard do not count there", elsewhere, processes)
	}
	if now := there(); now != began {
		t.Errorf("%d of %d processes make cgroups still: the others were refused one", now, began)
	}
}
