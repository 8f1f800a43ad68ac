package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
)

// Whoever waits for SyncNow has the tier in force, though nothing else has told of the cgroup.
func TestSyncNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch)
		n.attach(false)
		fixture.Cgroup(t, n.root, "/batch")
		id, _ := cgroup.ID(n.root, "/batch")
		began := time.Now()
		if !n.agent.SyncNow(t.Context()) {
			t.Error("SyncNow returned false, want true")
		}
		if n.entries[id] != enforce.Assign(tier.Background, "") {
			t.Errorf("the tier map has %v", n.entries)
		}
		if time.Since(began) != 0 {
			t.Errorf("it took %v", time.Since(began))
		}
		n.finish()
	})
}

// An agent that does not answer keeps nobody waiting beyond his time.
func TestSyncNowEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch)
		n.attach(false)
		n.finish()
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		if n.agent.SyncNow(ctx) {
			t.Error("SyncNow of an agent that has ended returned true, want false")
		}
	})
}
