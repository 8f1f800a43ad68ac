//go:build guest

package guest

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
)

// These tests run on the deterministic machine: what a host does beside would count as CPU time of the
// task that it interrupts.

// second of CPU time a CPU: long enough for starvation turns, which are due each 50 or 250 ms, to show and not to count.
func second() time.Duration { return time.Duration(runtime.NumCPU()) * time.Second }

// What starvation turns may take of the node here.
const (
	mostBackground = 0.005
	mostStandard   = 0.10
)

func tiersAreStrict(t *testing.T) {
	n := runtime.NumCPU()
	background, standard := spin(t, "/background", n), spin(t, "/standard", n)

	if got := used(t, second(), standard, background); got[1] > mostBackground {
		t.Errorf("background has %.3f beside standard", got[1])
	}
	critical := spin(t, "/critical", n)
	got := used(t, second(), critical, standard, background)
	if got[1] > mostStandard || got[1] < 0.005 || got[2] > mostBackground {
		t.Errorf("critical, standard, background have %.3f", got)
	}
	for _, s := range append(critical, standard...) {
		s.end()
	}
	background[0].pin(t, 0)
	if got := used(t, second(), background[:1], background[1:]); got[0] < 0.8/float64(n) {
		t.Errorf("of an idle node background has %.3f", got)
	}
	stats := snapshot(t).Stats
	if stats.Tier[tier.Background].Preempted == 0 || stats.Tier[tier.Background].StarvationTurns == 0 {
		t.Errorf("its counters do not show it: %+v", stats)
	}
}

func unmappedCgroupsHaveTheirDefaults(t *testing.T) {
	controlledCgroup(t, "/system.slice/some.service")
	n := runtime.NumCPU()
	standard, background := spin(t, "/standard", n), spin(t, "/background", n)
	if got := used(t, second(), standard, background); got[1] > mostBackground {
		t.Errorf("what nobody mapped is not standard: it has %.3f, background %.3f", got[0], got[1])
	}
	system := spin(t, "/system.slice/some.service", n)
	if got := used(t, second(), system, standard); got[1] > mostStandard {
		t.Errorf("system.slice is not system: it has %.3f, standard %.3f", got[0], got[1])
	}
	// Its guaranteed share is a fifth of the node; beyond it, it shares with critical.
	before := snapshot(t).Stats.SystemOver
	critical := spin(t, "/critical", n)
	if got := used(t, second(), system, critical); got[0] < 0.18 || got[0] > 0.65 {
		t.Errorf("system.slice has %.3f beside critical %.3f", got[0], got[1])
	}
	for _, s := range system {
		s.end()
	}
	if snapshot(t).Stats.SystemOver == before {
		t.Error("nobody counted that system.slice went beyond its share")
	}
}

func tiersAreInherited(t *testing.T) {
	n := runtime.NumCPU()
	critical := spin(t, "/critical", n)
	controlledCgroup(t, "/background/b/c/d")
	nested := spin(t, "/background/b/c/d", n)
	if got := used(t, second(), critical, nested); got[1] > mostBackground {
		t.Errorf("a cgroup within background has %.3f", got[1])
	}
	// Without the controller the kernel schedules the nearest ancestor that has it.
	makeCgroup(t, "/background/bare/inner")
	bare := spin(t, "/background/bare/inner", n)
	if got := used(t, second(), critical, bare); got[1] > mostBackground {
		t.Errorf("a cgroup within background, without the cpu controller, has %.3f", got[1])
	}
}

func mapChangeMovesACgroup(t *testing.T) {
	n := runtime.NumCPU()
	controlledCgroup(t, "/background/inner")
	critical, inner := spin(t, "/critical", n), spin(t, "/background/inner", n)
	expect := func(what string, least, most float64) {
		t.Helper()
		used(t, second()/10, critical, inner) // what is queued changes its tier at its next turn
		if got := used(t, second(), critical, inner); got[1] < least || got[1] > most {
			t.Errorf("%s: it has %.3f", what, got[1])
		}
	}
	expect("inherited background", 0, mostBackground)
	changeTiers(t, "/background/inner", func(m enforce.TierMap, id uint64) error { return m.Set(id, enforce.Assign(tier.Critical, "")) })
	expect("mapped to critical", 0.4, 0.6)
	changeTiers(t, "/background/inner", func(m enforce.TierMap, id uint64) error { return m.Set(id, enforce.Assign(tier.Standard, "")) })
	expect("mapped to standard", 0.005, mostStandard)
	changeTiers(t, "/background/inner", enforce.TierMap.Delete)
	expect("unmapped", 0, mostBackground)
}

// A task whose tier changes while it runs may go on for long, if it is ahead of those that queue. From
// there on it must be due what its new tier gives it. Nobody else may use its CPU before: a task that
// stops is counted anew.
func TestTimedMapChangeCountsForARunningTask(t *testing.T) {
	loader := attachTiers(t)
	write(t, root.Cgroup("/background/cpu.weight"), "10")
	n := runtime.NumCPU()
	others, last := firstCPUs(n-1), n-1
	bind(t, loader.cmd.Process.Pid, others)
	bindSelf(t, others)
	critical, light := spin(t, "/critical", n+1), spin(t, "/background", 1)
	light[0].pin(t, last)
	for _, s := range critical {
		bind(t, s.pid, others)
	}
	used(t, second()/10, critical, light)
	changeTiers(t, "/background", func(m enforce.TierMap, id uint64) error { return m.Set(id, enforce.Assign(tier.Critical, "")) })
	used(t, second()/10, critical, light)
	for _, s := range critical {
		bind(t, s.pid, firstCPUs(n))
	}
	const due = 10.0 / 110
	if got := used(t, second()/2, light, critical); got[0] > due+0.03 {
		t.Errorf("with a tenth of the other's weight it has %.3f", got[0])
	}
}

func movedTaskChangesItsTier(t *testing.T) {
	n := runtime.NumCPU()
	critical, moved := spin(t, "/critical", n), spin(t, "/background", n)
	for _, to := range []struct {
		cg          string
		least, most float64
	}{
		{"/critical", 0.4, 0.6}, {"/background", 0, mostBackground}, {"/standard", 0.005, mostStandard}, {"/critical", 0.4, 0.6},
	} {
		for _, s := range moved {
			s.moveTo(t, to.cg)
		}
		if got := used(t, second(), critical, moved); got[1] < to.least || got[1] > to.most {
			t.Errorf("in %s it has %.3f", to.cg, got[1])
		}
	}
}

// Cgroups come and go by the hundred under full load, each with a process, and the last of them are
// in the right tier: slots are given back, and ids that return are not taken for the old ones.
func cgroupsComeAndGo(t *testing.T) {
	seq := kernel(t).EnableSeq
	n := runtime.NumCPU()
	controlledCgroup(t, "/critical/first")
	critical := spin(t, "/critical/first", n)
	const script = `cd /sys/fs/cgroup/critical
		for i in $(seq 100); do mkdir c$i && sh -c "echo 0 >c$i/cgroup.procs" & done; wait
		for i in $(seq 100); do rmdir c$i; done`
	for round := range 4 {
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("round %d: %v: %s", round, err, out)
		}
	}
	for _, cg := range []string{"/critical/last", "/background/last"} {
		controlledCgroup(t, cg)
	}
	same, lower := spin(t, "/critical/last", n), spin(t, "/background/last", n)
	if got := used(t, second(), critical, same, lower); got[1] < 0.1 || got[2] > mostBackground {
		t.Errorf("critical, critical/last, background/last have %.3f", got)
	}
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Errorf("%+v, enable_seq was %d", s, seq)
	}
}

// changeTiers changes the tier map for a cgroup, and publishes it.
func changeTiers(t *testing.T, cg string, change func(m enforce.TierMap, id uint64) error) {
	t.Helper()
	id, err := cgroup.ID(root, cg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := enforce.OpenTierMap(root.Pins())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := change(m, id); err != nil {
		t.Fatal(cg, err)
	}
	m.Publish()
}

// snapshot is what the scheduler's maps say.
func snapshot(t *testing.T) *enforce.Snapshot {
	t.Helper()
	s, err := enforce.ReadPinned(root.Pins())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
