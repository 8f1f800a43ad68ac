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
	cases := []struct {
		lock    string
		readers int
		busy    int           // others beside them, each in a long system call
		quota   time.Duration // of all of them, in 100 ms
		stock   lateness
	}{
		{lock: "memory", readers: 40, quota: 2 * time.Millisecond},
		{lock: "memory", readers: 20, quota: 20 * time.Millisecond},
		{lock: "memory", readers: 20, busy: 2, quota: 20 * time.Millisecond},
		{lock: "folder", readers: 40, quota: 2 * time.Millisecond},
		{lock: "folder", readers: 40, busy: 2, quota: 20 * time.Millisecond},
		{lock: "cgroups", readers: 40, quota: 2 * time.Millisecond},
		{lock: "rcu", readers: 20, quota: 20 * time.Millisecond},
		{lock: "rcu", readers: 40, quota: time.Millisecond},
	}
	for _, cg := range cgroupsOfTiers {
		controlledCgroup(t, cg)
	}
	for i, c := range cases {
		limit(t, "/limited", c.quota, 100*time.Millisecond)
		cases[i].stock = askForWrite(t, c.lock, "/limited", c.readers, c.busy)
	}
	attachTiers(t)
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s %d+%d %v", c.lock, c.readers, c.busy, c.quota), func(t *testing.T) {
			limit(t, "/limited", c.quota, 100*time.Millisecond)
			ours := askForWrite(t, c.lock, "/limited", c.readers, c.busy)
			t.Logf("stock: %v", c.stock)
			t.Logf("temper: %v", ours)
			if bar := max(most, 2*c.stock.longest); ours.longest > bar {
				t.Errorf("critical had it after %v, more than %v", ours.longest, bar)
			}
		})
	}
}

// askForWrite has a critical task ask often for a lock under which readers of a cgroup read all the time.
func askForWrite(t *testing.T, lock, cg string, readers, busy int) (took lateness) {
	t.Helper()
	out := outputIn(t, "/critical", "readers", lock, t.TempDir(), root.Cgroup(cg), strconv.Itoa(readers), strconv.Itoa(busy),
		strconv.Itoa(asks))
	if _, err := fmt.Sscan(string(out), &took.p50, &took.p99, &took.p999, &took.longest); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return took
}
