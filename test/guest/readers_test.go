//go:build guest

package guest

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// A lock of the kernel that any number have at once to read, and whose readers nobody names (lab/guest/load/readers.c). Critical
// is to have it to write about as soon as on the stock kernel, though all that read have used up their limit.
func TestTimedReadersWithALimit(t *testing.T) {
	// A reader of a folder has it for a millisecond, and is interrupted there.
	const most = 10 * time.Millisecond
	for _, c := range []struct {
		lock    string
		readers int
		quota   time.Duration // of all readers, in 100 ms
	}{
		{"memory", 40, 2 * time.Millisecond},
		{"memory", 20, 20 * time.Millisecond},
		{"folder", 40, 2 * time.Millisecond},
		{"cgroups", 40, 2 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%s %d %v", c.lock, c.readers, c.quota), func(t *testing.T) {
			for _, cg := range cgroupsOfTiers {
				controlledCgroup(t, cg)
			}
			limit(t, "/limited", c.quota, 100*time.Millisecond)
			stock := askForWrite(t, c.lock, "/limited", c.readers)
			attachTiers(t)
			ours := askForWrite(t, c.lock, "/limited", c.readers)
			t.Logf("stock: %v", stock)
			t.Logf("temper: %v", ours)
			if bar := max(most, 2*stock.longest); ours.longest > bar {
				t.Errorf("critical had it after %v, more than %v", ours.longest, bar)
			}
		})
	}
}

// askForWrite has a critical task ask often for a lock under which readers of a cgroup read all the time.
func askForWrite(t *testing.T, lock, cg string, readers int) (took lateness) {
	t.Helper()
	out := outputIn(t, "/critical", "readers", lock, t.TempDir(), root.Cgroup(cg), strconv.Itoa(readers), strconv.Itoa(asks))
	if _, err := fmt.Sscan(string(out), &took.p50, &took.p99, &took.p999, &took.longest); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return took
}
