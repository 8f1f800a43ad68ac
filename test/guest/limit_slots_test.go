//go:build guest

package guest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// A cgroup beyond those that can be told apart has its parent's limit. It is said that its own is not kept, and until when.
func TestLimitsBeyondAllSlots(t *testing.T) {
	joinSystem(t)
	attach(t)
	seq := kernel(t).EnableSeq
	limit(t, "/known", 50*time.Millisecond, 100*time.Millisecond)
	slots := takeSlots(t)
	limit(t, "/known/crowded", 20*time.Millisecond, 100*time.Millisecond)
	group := spin(t, "/known/crowded", 2)
	eventually(t, "the limit above is felt", func() bool { return limitOf(t, "/known").Holds > 10 })
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
	slots.giveBack(t)
	limit(t, "/known/again", 20*time.Millisecond, 100*time.Millisecond)
	spin(t, "/known/again", 2)
	eventually(t, "a slot is found again", func() bool { return limitOf(t, "/known/again").Holds > 10 })
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Errorf("%+v, enable_seq was %d", s, seq)
	}
}

// slots are those of the attached scheduler that no cgroup has.
type slots struct {
	free *ebpf.Map
	all  []uint32
}

func takeSlots(t *testing.T) *slots {
	t.Helper()
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if err != nil {
			t.Fatal("no map free_slots: ", err)
		}
		id = next
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue // it has gone meanwhile
		}
		info, err := m.Info()
		if err != nil || info.Name != "free_slots" {
			m.Close()
			continue
		}
		t.Cleanup(func() { m.Close() })
		s := &slots{free: m}
		for slot := uint32(0); m.LookupAndDelete(nil, &slot) == nil; {
			s.all = append(s.all, slot)
		}
		if len(s.all) == 0 {
			t.Fatal("no slot was free")
		}
		return s
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
