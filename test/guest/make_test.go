//go:build guest

package guest

import (
	"encoding/binary"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
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
	for range 4 {
		asks := play(t, askerRole+"=1")
		if _, err := asks.works.Read(make([]byte, 1)); err != nil {
			t.Fatal("the one who asks does not run: ", err)
		}
		asks.moveTo(t, "/standard")
	}
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

// beAnAsker has something stored for a cgroup over and over. On kernels where the kernel counts who is about that, and is
// interrupted in the middle, others who are on the same CPU are told that nothing is stored for any cgroup.
func beAnAsker() {
	stored, err := ebpf.NewMap(&ebpf.MapSpec{
		Type: ebpf.CgroupStorage, KeySize: 4, ValueSize: 4, Flags: unix.BPF_F_NO_PREALLOC,
		Key: &btf.Int{Size: 4}, Value: &btf.Int{Size: 4},
	})
	if err != nil {
		panic(err)
	}
	dir, err := os.Open(root.Cgroup("/"))
	if err != nil {
		panic(err)
	}
	os.Stdout.Write([]byte{1})
	for i := uint32(0); ; i++ {
		if err := stored.Put(uint32(dir.Fd()), i); err != nil {
			panic(err)
		}
	}
}

// This program plays the one who asks, too: TestMain.
const askerRole = "TEMPER_TEST_ASKER"
