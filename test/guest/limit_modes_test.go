//go:build guest

package guest

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/enforce"
)

// Beyond its limit a cgroup may use what nobody wants, and no more.
func TestTimedGapsBeyondALimit(t *testing.T) {
	joinSystem(t)
	attach(t, "--limits", "gap")
	const quota, period = 50 * time.Millisecond, 100 * time.Millisecond
	limit(t, "/limited", quota, period)
	controlledCgroup(t, "/others")
	n := runtime.NumCPU()
	group := spin(t, "/limited", 2*n)
	watchUse(t, group, 300*time.Millisecond, 1)
	if got := cpusUsed(watchUse(t, group, period, 10)); got < 0.97*float64(n) {
		t.Errorf("alone on %d CPUs it uses %.3f", n, got)
	}
	spin(t, "/others", 2*n)
	// What it has not used while it ran in gaps it uses at once, and pays back within the ten periods of the limit's ledger.
	ahead := cpusUsed(watchUse(t, group, period, 13))
	steady := cpusUsed(watchUse(t, group, period, 20))
	t.Logf("beside others: %.4f CPUs in the first 13 periods, %.4f in the 20 that follow", ahead, steady)
	if ahead < 0.5 || ahead > 0.55 {
		t.Errorf("beside others it first uses %.4f CPUs; want 0.5 to 0.55", ahead)
	}
	if steady < 0.495 || steady > 0.53 {
		t.Errorf("beside others it then uses %.4f CPUs; want 0.495 to 0.53", steady)
	}
	if l := limitOf(t, "/limited"); l.BeyondSeconds < 0.5 {
		t.Errorf("%+v", l)
	}
}

// As under the stock kernel: all of a quota at once, then nothing until the next period.
func TestTimedFreeze(t *testing.T) {
	joinSystem(t)
	attach(t, "--limits", "freeze")
	limit(t, "/limited", 150*time.Millisecond, 100*time.Millisecond)
	group := spin(t, "/limited", 8)
	watchUse(t, group, 300*time.Millisecond, 1)
	if got := cpusUsed(watchUse(t, group, 100*time.Millisecond, 20)); got < 1.45 || got > 1.52 {
		t.Errorf("%.3f CPUs, not 1.5", got)
	}
	if l := limitOf(t, "/limited"); l.LongestThrottleMs < 20 {
		t.Errorf("nobody was frozen: %+v", l)
	}
}

func TestLimitsThatAreIgnored(t *testing.T) {
	limit(t, "/limited/inner", 50*time.Millisecond, 100*time.Millisecond)
	l := attach(t, "--limits", "ignore")
	if s, err := enforce.ReadPinned(root.Pins()); err != nil || s.Info.Limits != enforce.LimitsIgnore {
		t.Errorf("%v: %+v", err, s)
	}
	if said := read(t, l.stderr); !strings.Contains(said, "/limited/inner/cpu.max") || !strings.Contains(said, "NOT kept") {
		t.Errorf("said %q", said)
	}
	used(t, 200*time.Millisecond, spin(t, "/limited/inner", 2))
}

// A cgroup may have another mode than the node, and what is below it has that, too: beyond its limit it may use what nobody
// wants, or it is frozen. The limit of a cgroup above whose mode is stricter is kept.
func modesOfCgroups(t *testing.T) {
	const quota, period = 30 * time.Millisecond, 100 * time.Millisecond
	n := float64(runtime.NumCPU())
	limit(t, "/pod", quota, period)
	controlledCgroup(t, "/pod/container")
	group := spin(t, "/pod/container", 2*runtime.NumCPU())
	uses := func(what, mode string, least, most float64) {
		t.Helper()
		watchUse(t, group, 300*time.Millisecond, 1)
		if got := cpusUsed(watchUse(t, group, period, 12)); got < least || got > most {
			t.Errorf("%s: it uses %.3f CPUs", what, got)
		}
		if l := limitOf(t, "/pod"); l.Mode != mode {
			t.Errorf("%s: %+v", what, l)
		}
	}
	assign := func(cg, mode string) {
		changeTiers(t, cg, func(m enforce.TierMap, id uint64) error { return m.Set(id, enforce.Assign(tier.Standard, mode)) })
	}
	assign("/pod", config.LimitsGap)
	uses("with gaps", config.LimitsGap, 0.95*n, n)
	assign("/pod", config.LimitsFreeze)
	uses("frozen", config.LimitsFreeze, 0.28, 0.31)
	assign("/pod", "")
	uses("as the node", config.LimitsPaced, 0.28, 0.31)

	limit(t, "/pod/container", quota/3, period)
	assign("/pod/container", config.LimitsGap)
	watchUse(t, group, 2*period, 1)
	uses("with gaps within a limit without", config.LimitsPaced, 0.09, 0.31)
	if l := limitOf(t, "/pod/container"); l.Mode != config.LimitsGap {
		t.Errorf("%+v", l)
	}
	changeTiers(t, "/pod/container", enforce.TierMap.Delete)
	changeTiers(t, "/pod", enforce.TierMap.Delete)
}
