//go:build guest

package guest

import (
	"math"
	"runtime"
	"testing"
)

// On the deterministic machine ('make test-timed'), as all shares.
//
// Critical comes first up to its reservation. What it wants beyond that it shares with standard, as weights say at
// every level, whatever tiers stand below.
func TestTimedCriticalSharesBeyondItsReservation(t *testing.T) {
	const reserved = 1
	joinSystem(t)
	for cg, weight := range map[string]string{
		"/critical": "300", "/standard": "100", // side by side
		"/pods": "100", "/pods/critical": "300", "/pods/standard": "100", // below one cgroup, beside another
	} {
		controlledCgroup(t, cg)
		write(t, root.Cgroup(cg+"/cpu.weight"), weight)
	}
	attach(t, "--reservation", "1", "--tier", "critical="+root.Cgroup("/critical"), "--tier", "critical="+root.Cgroup("/pods/critical"))
	cpus := float64(runtime.NumCPU())
	many := 2 * runtime.NumCPU()

	// due is its share of what is beyond the reservation.
	for _, c := range []struct {
		name   string
		groups []string // the first is critical
		due    []float64
	}{
		{"side by side", []string{"/critical", "/standard"}, []float64{3. / 4, 1. / 4}},
		{"below one", []string{"/pods/critical", "/pods/standard", "/standard"}, []float64{1. / 2 * 3 / 4, 1. / 2 * 1 / 4, 1. / 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tasks [][]*spinner
			for _, cg := range c.groups {
				tasks = append(tasks, spin(t, cg, many))
			}
			used(t, second(), tasks...) // what they owe each other from before all of them were there
			for i, share := range used(t, 5*second(), tasks...) {
				due := c.due[i] * (cpus - reserved) / cpus
				if i == 0 {
					due += reserved / cpus
				}
				t.Logf("%s: due %.4f, off by %+.2f %%", c.groups[i], due, 100*(share/due-1))
				if math.Abs(share-due) > 0.03*due {
					t.Errorf("%s has %.4f, not %.4f", c.groups[i], share, due)
				}
			}
		})
	}
	if snapshot(t).Stats.CriticalOver == 0 {
		t.Error("the counter does not show it")
	}

	standard := spin(t, "/standard", many)
	critical := spin(t, "/critical", reserved)
	used(t, second(), critical, standard)
	if share := used(t, second(), critical, standard)[0]; share < 0.98*reserved/cpus {
		t.Errorf("critical has %.3f of the node, and wants no more than the %.3f that are reserved", share, reserved/cpus)
	}
}
