//go:build guest

package guest

import (
	"math"
	"runtime"
	"testing"
	"time"
)

// slice is how long a task of the upper tiers runs before others of its tier have their turn.
const slice = 3 * time.Millisecond

// On the deterministic machine ('make test-timed'): another host's business would count as a task's CPU time.
//
// Cgroups share by weight at every level, tasks by nice: each group's CPU time over seconds of the
// node is what its weights say. Each group has enough tasks to be able to use its share.
func sharesFollowNestedWeightsAndNice(t *testing.T) {
	for cg, weight := range map[string]string{
		"/critical/a": "100", "/critical/a/c": "100", "/critical/a/d": "300",
		"/critical/b": "300", "/critical/b/e": "100", "/critical/b/f": "300",
	} {
		controlledCgroup(t, cg)
		write(t, root.Cgroup(cg+"/cpu.weight"), weight)
	}
	n := runtime.NumCPU()
	kind, niced := spin(t, "/critical/b/f", n), spin(t, "/critical/b/f", n)
	for _, s := range niced {
		s.nice(t, 5)
	}
	// The kernel's weights: nice 0 is 1024, nice 5 is 335.
	const zero, five = 1024.0 / (1024 + 335), 335.0 / (1024 + 335)
	groups := []struct {
		name  string
		tasks []*spinner
		due   float64
	}{
		{"a/c", spin(t, "/critical/a/c", n), 1. / 16},
		{"a/d", spin(t, "/critical/a/d", n), 3. / 16},
		{"b/e", spin(t, "/critical/b/e", n), 3. / 16},
		{"b/f nice 0", kind, 9. / 16 * zero},
		{"b/f nice 5", niced, 9. / 16 * five},
	}
	var tasks [][]*spinner
	for _, g := range groups {
		tasks = append(tasks, g.tasks)
	}
	used(t, second(), tasks...) // what they owe each other from before all of them were there
	const windows = 5
	sum := make([]float64, len(groups))
	for window := range windows {
		for i, share := range used(t, second(), tasks...) {
			g := groups[i]
			t.Logf("second %d: %-10s due %.4f, off by %+.2f %%", window, g.name, g.due, 100*(share/g.due-1))
			// A second ends in the middle of turns: each task may have had one too many or too few.
			turns := float64(len(g.tasks)) * float64(slice) / float64(second())
			if math.Abs(share-g.due) > 0.02*g.due+turns {
				t.Errorf("second %d: %s has %.4f, not %.4f", window, g.name, share, g.due)
			}
			sum[i] += share
		}
	}
	for i, g := range groups {
		if share := sum[i] / windows; math.Abs(share-g.due) > 0.02*g.due {
			t.Errorf("in all, %s has %.4f, not %.4f", g.name, share, g.due)
		}
	}
}

// Virtual time passes at another pace on each CPU to which tasks are bound, and the clock is the fastest. One that runs on where it
// is slow keeps nobody waiting who starts from the clock.
func whoLagsGivesWay(t *testing.T) {
	runsOn := pinned(t, "/critical", 1)
	for range 2 { // they take turns: the clock follows who starts
		pinned(t, "/critical", 0)[0].nice(t, 19)
	}
	used(t, second(), runsOn)
	comes := pinned(t, "/critical", 1)
	had := used(t, second()/2, comes, runsOn)
	t.Logf("who comes has %.3f of the CPU", had[0])
	if had[0] < 0.3 {
		t.Error("it waits for one whose virtual time is behind")
	}
}
