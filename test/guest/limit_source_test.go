//go:build guest

package guest

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"

	"temper.dev/temper/internal/base/exit"
)

// A kernel that tells no scheduler of limits, and does not say where it keeps them.
func TestLimitsThatCannotBeKeptAreRefused(t *testing.T) {
	limit(t, "/limited/inner", 50*time.Millisecond, 100*time.Millisecond)
	refused(t, exit.LimitsPresent, "/limited/inner/cpu.max", withTypes(t, func(typ btf.Type) {
		hidden := map[string]string{"sched_ext_ops": "cgroup_set_bandwidth", "cfs_bandwidth": "quota"}
		if s, ok := typ.(*btf.Struct); ok {
			for i, m := range s.Members {
				if m.Name == hidden[s.Name] && m.Name != "" {
					s.Members[i].Name = "another"
				}
			}
		}
	}))
}

// Before 6.17 the kernel tells of no limits, and they are read: as a scheduler comes, as a cgroup comes, and as they change.
func TestTimedLimitsThatAreRead(t *testing.T) {
	joinSystem(t)
	const period = 100 * time.Millisecond
	limit(t, "/before", 50*time.Millisecond, period)
	attach(t, "--read-limits")
	limit(t, "/above", 60*time.Millisecond, period)
	controlledCgroup(t, "/above/below")
	before, below := spin(t, "/before", 3), spin(t, "/above/below", 3)
	uses := func(what string, group []*spinner, least, most float64) {
		t.Helper()
		watchUse(t, group, 1500*time.Millisecond, 1) // a change is seen, and what comes at once is repaid
		if got := cpusUsed(watchUse(t, group, period, 10)); got < least || got > most {
			t.Errorf("%s: %.3f CPUs", what, got)
		}
	}
	uses("there before", before, 0.48, 0.51)
	uses("above", below, 0.58, 0.61)
	write(t, root.Cgroup("/above/cpu.max"), "90000 100000")
	uses("raised", below, 0.88, 0.91)
	write(t, root.Cgroup("/above/cpu.max"), "20000 50000")
	uses("lowered, with another period", below, 0.38, 0.41)
	write(t, root.Cgroup("/above/cpu.max"), "1000 1000000")
	eventually(t, "all wait", func() bool { return limitOf(t, "/above").Waiting == 3 })
	write(t, root.Cgroup("/above/cpu.max"), "max")
	uses("lifted", below, 1, float64(runtime.NumCPU()))
	for _, s := range append(before, below...) {
		s.end()
	}
	for _, cg := range []string{"/above/below", "/above", "/before"} {
		if err := os.Remove(root.Cgroup(cg)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "no limit is left", func() bool { return len(snapshot(t).Limits) == 0 })
}
