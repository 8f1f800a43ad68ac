//go:build guest

package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"temper.dev/temper/internal/base/tier"
)

// Of a cgroup beyond those that can be told apart neither tier nor limit are known. Its tasks run as background, within its
// parent's limit, and that is said, until when.
func TestCgroupsBeyondAllSlots(t *testing.T) {
	joinSystem(t)
	controlledCgroup(t, "/known")
	attach(t, "--tier", "critical="+root.Cgroup("/known"))
	seq := kernel(t).EnableSeq
	limit(t, "/known", 50*time.Millisecond, 100*time.Millisecond)
	slots := takeSlots(t, "free_slots")
	reserved := takeSlots(t, "reserved_slots")
	limit(t, "/known/crowded", 20*time.Millisecond, 100*time.Millisecond)
	before := snapshot(t).Stats.Tier[tier.Background].RunNs
	group := spin(t, "/known/crowded", 2)
	eventually(t, "the limit above is felt", func() bool { return limitOf(t, "/known").Throttles > 10 })
	eventually(t, "they run as background", func() bool {
		return time.Duration(snapshot(t).Stats.Tier[tier.Background].RunNs-before) > 100*time.Millisecond
	})
	s := look(t)
	if s.Crowded != 1 || !slices.ContainsFunc(s.Problems, func(p string) bool { return strings.Contains(p, "1 cgroups are beyond") }) {
		t.Errorf("%d, %q", s.Crowded, s.Problems)
	}
	for _, l := range s.Limits {
		if l.Cgroup != "/known" {
			t.Errorf("%+v", l)
		}
	}
	for _, s := range group {
		s.end()
	}
	if err := os.Remove(root.Cgroup("/known/crowded")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody is crowded", func() bool { return look(t).Crowded == 0 })
	reserved.giveBack(t)
	slots.giveBack(t)
	limit(t, "/known/again", 20*time.Millisecond, 100*time.Millisecond)
	spin(t, "/known/again", 2)
	eventually(t, "a slot is found again", func() bool { return limitOf(t, "/known/again").Throttles > 10 })
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Errorf("%+v, enable_seq was %d", s, seq)
	}
}

// A user who was given a subtree may use up what there is, and root's cgroups are told apart all the same.
func TestNoUserTakesTheLastSlots(t *testing.T) {
	joinSystem(t)
	attach(t)
	controlledCgroup(t, "/given")
	write(t, root.Cgroup("/given/cgroup.subtree_control"), "+cpu")
	if err := os.Chown(root.Cgroup("/given"), user, user); err != nil {
		t.Fatal(err)
	}
	slots := takeSlots(t, "free_slots")
	t.Cleanup(func() { slots.giveBack(t) })
	mkdir := exec.Command("mkdir", root.Cgroup("/given/users"))
	mkdir.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if out, err := mkdir.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { removeCgroup(t, "/given/users") })
	if n := look(t).Crowded; n != 1 {
		t.Errorf("of a user's cgroup without a slot: crowded %d, want 1", n)
	}
	controlledCgroup(t, "/given/roots")
	if n := look(t).Crowded; n != 1 {
		t.Errorf("with root's cgroup: crowded %d, want 1", n)
	}
}

// Nor does a user keep the scheduler away who has made more than there are before it is attached.
func TestNightlyUsersCgroupsRefuseNoScheduler(t *testing.T) {
	const most = 16383
	joinSystem(t)
	limit(t, "/limited", 20*time.Millisecond, 100*time.Millisecond)
	makeCgroup(t, "/given")
	for i := range most {
		cg := root.Cgroup(fmt.Sprint("/given/", i))
		if err := errors.Join(os.Mkdir(cg, 0o755), os.Chown(cg, user, user)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(cg) }) // if it fails, so does that of the folder above
	}
	attach(t)
	spin(t, "/limited", 2)
	eventually(t, "the limit of root's is kept", func() bool { return limitOf(t, "/limited").Throttles > 10 })
}

// slots are those of the attached scheduler that no cgroup has.
type slots struct {
	free *ebpf.Map
	all  []uint32
}

// takeSlots leaves none, but those that are for root.
func takeSlots(t *testing.T, queue string) *slots {
	t.Helper()
	s := &slots{free: mapNamed(t, queue)}
	for slot := uint32(0); s.free.LookupAndDelete(nil, &slot) == nil; {
		s.all = append(s.all, slot)
	}
	if len(s.all) == 0 {
		t.Fatal("no slot was free")
	}
	return s
}

// mapNamed is a map of the attached scheduler, pinned or not, until the test ends.
func mapNamed(t *testing.T, name string) *ebpf.Map {
	t.Helper()
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if err != nil {
			t.Fatalf("no map %s: %v", name, err)
		}
		id = next
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue // it has gone meanwhile
		}
		if info, err := m.Info(); err == nil && info.Name == name {
			t.Cleanup(func() { m.Close() })
			return m
		}
		m.Close()
	}
}

func (s *slots) giveBack(t *testing.T) {
	t.Helper()
	for _, slot := range s.all {
		if err := s.free.Put(nil, slot); err != nil {
			t.Fatal(err)
		}
	}
}
