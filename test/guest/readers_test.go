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
		cases[i].stock = askForWrite(t, c.lock, "/limited", c.readers, c.busy, asks)
	}
	attachTiers(t)
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s %d+%d %v", c.lock, c.readers, c.busy, c.quota), func(t *testing.T) {
			limit(t, "/limited", c.quota, 100*time.Millisecond)
			ours := askForWrite(t, c.lock, "/limited", c.readers, c.busy, asks)
			t.Logf("stock: %v", c.stock)
			t.Logf("temper: %v", ours)
			if bar := max(most, 2*c.stock.longest); ours.longest > bar {
				t.Errorf("critical had it after %v, more than %v", ours.longest, bar)
			}
		})
	}
}

// The same on a full node, with readers in background: nobody holds them, and none of them has a CPU of itself. While somebody
// waits for them they have a 32nd of each CPU at most. The stock kernel has them in a cgroup with cpu.idle.
func TestTimedReadersBesideStandard(t *testing.T) {
	readBesideStandard(t, 200*time.Millisecond, []readersCase{{"memory", 20}, {"folder", 40}, {"cgroups", 40}, {"files", 20}})
}

// As many as that keep the stock kernel's critical task waiting for seconds.
func TestNightlyManyReadersBesideStandard(t *testing.T) {
	readBesideStandard(t, time.Second, []readersCase{{"memory", 200}, {"folder", 200}, {"cgroups", 200}})
}

type readersCase struct {
	lock    string
	readers int
}

func readBesideStandard(t *testing.T, most time.Duration, cases []readersCase) {
	const times = 30
	// A 32nd, turns of background, and the readers' beginning and end.
	const mostOfNode = 0.05
	stock := make([]lateness, len(cases))
	for _, cg := range cgroupsOfTiers {
		controlledCgroup(t, cg)
	}
	spin(t, "/standard", 2*runtime.NumCPU())
	write(t, root.Cgroup("/background/cpu.idle"), "1")
	for i, c := range cases {
		stock[i] = askForWrite(t, c.lock, "/background", c.readers, 0, times)
	}
	write(t, root.Cgroup("/background/cpu.idle"), "0")
	attachTiers(t)
	for i, c := range cases {
		t.Run(fmt.Sprintf("%s %d", c.lock, c.readers), func(t *testing.T) {
			before, began := usage(t, "/background"), time.Now()
			ours := askForWrite(t, c.lock, "/background", c.readers, 0, times)
			ofNode := (usage(t, "/background") - before).Seconds() / time.Since(began).Seconds() / float64(runtime.NumCPU())
			t.Logf("stock: %v", stock[i])
			t.Logf("temper: %v, and the readers had %.3f of the node", ours, ofNode)
			if bar := max(most, stock[i].longest); ours.longest > bar {
				t.Errorf("critical had it after %v, more than %v", ours.longest, bar)
			}
			if ofNode > mostOfNode {
				t.Errorf("the readers had %.3f of the node, more than %v", ofNode, mostOfNode)
			}
		})
	}
}

// askForWrite has a critical task ask often for a lock under which readers of a cgroup read all the time.
func askForWrite(t *testing.T, lock, cg string, readers, busy, times int) (took lateness) {
	t.Helper()
	out := outputIn(t, "/critical", "readers", lock, t.TempDir(), root.Cgroup(cg), strconv.Itoa(readers), strconv.Itoa(busy),
		strconv.Itoa(times))
	if _, err := fmt.Sscan(string(out), &took.p50, &took.p99, &took.p999, &took.longest); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return took
}
