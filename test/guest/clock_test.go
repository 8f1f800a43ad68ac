//go:build guest

package guest

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
)

// Whoever sets the clock changes nothing: what counts time counts the kernel's, which nobody sets.
func TestTheClockIsSet(t *testing.T) {
	a := startAgent(t, batch)
	before, seq := a.await(enforce.SCX), kernel(t).EnableSeq
	for _, step := range []time.Duration{-365 * 24 * time.Hour, 2 * 365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		setClock(t, time.Now().Add(step))
		makeCgroup(t, "/batch")
		eventually(t, "a cgroup that comes has its tier", func() bool { got, ok := mapped(t, "/batch"); return ok && got == tier.Background })
		removeCgroup(t, "/batch")
		eventually(t, "one that goes has none", func() bool { return look(t).Tiers[tier.Background].Cgroups == 0 })
		s := look(t)
		if s.Rung != enforce.SCX || s.Loader.HeartbeatAgeS < 0 || s.Loader.HeartbeatAgeS > 5 || !slices.Equal(s.Exits, before.Exits) || len(s.Problems) > 0 {
			t.Errorf("after a step of %v: %+v, loader %+v", step, s, s.Loader)
		}
	}
	if now := kernel(t).EnableSeq; now != seq {
		t.Errorf("attached %d times, %d before", now, seq)
	}
}

func setClock(t *testing.T, now time.Time) {
	t.Helper()
	to := syscall.NsecToTimeval(now.Round(0).UnixNano()) // Round drops the reading that no step changes
	if err := syscall.Settimeofday(&to); err != nil {
		t.Fatal(err)
	}
}
