//go:build guest

package guest

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// A lock of the kernel that any number have at once to read, and whose readers nobody names (lab/guest/load/readers.c). Critical
// is to have it to write, whoever reads: processes that have used up their limit, on a node with time to spare, or background
// on a full one.
func TestReadersLetCriticalWrite(t *testing.T) {
	attachTiers(t)
	for _, c := range []struct {
		lock    string
		limit   time.Duration // quota of the readers, in 100 ms; 0: they are background on a full node
		readers int
	}{
		{"memory", 2 * time.Millisecond, 200},
		{"memory", 20 * time.Millisecond, 20},
		{"memory", 0, 20},
		{"memory", 0, 200},
		{"folder", 2 * time.Millisecond, 200},
		{"folder", 0, 200},
		{"cgroups", 2 * time.Millisecond, 200},
		{"cgroups", 0, 200},
	} {
		t.Run(fmt.Sprintf("%s %d %v", c.lock, c.readers, c.limit), func(t *testing.T) {
			cg := "/background"
			if c.limit > 0 {
				cg = "/limited"
				limit(t, cg, c.limit, 100*time.Millisecond)
			} else {
				for _, s := range spin(t, "/standard", runtime.NumCPU()) {
					defer s.end()
				}
			}
			began := time.Now()
			before := usage(t, cg)
			out := outputIn(t, "/critical", "readers", c.lock, t.TempDir(), root.Cgroup(cg), strconv.Itoa(c.readers), "50")
			var took lateness
			if _, err := fmt.Sscan(string(out), &took.p50, &took.p99, &took.p999, &took.longest); err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			t.Logf("%v; the readers had %.4f CPUs", took, float64(usage(t, cg)-before)/float64(time.Since(began)))
		})
	}
}
