//go:build guest

package guest

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/node/status"
)

// TestWaitsAreToldBeforeTheyEnd: of each cause, one that is under way is told with the thread that waits, and counted when it has ended.
func TestWaitsAreToldBeforeTheyEnd(t *testing.T) {
	limit(t, "/limited", 2*time.Millisecond, time.Second)
	attachTiers(t)
	bindSelf(t, []int{0})
	for _, c := range []struct {
		waitsFor string
		begin    func(*testing.T) []*spinner // those that wait
	}{
		{"its limit", func(t *testing.T) []*spinner { return spin(t, "/limited", 4) }},
		{"one CPU", func(t *testing.T) []*spinner {
			pinned(t, "/critical", taken)
			return pinned(t, "/background", taken)
		}},
		{"any CPU", func(t *testing.T) []*spinner {
			spin(t, "/critical", 2*runtime.NumCPU())
			return spin(t, "/background", 4)
		}},
		{"a real-time task", func(t *testing.T) []*spinner {
			waiting := pinned(t, "/critical", taken)
			hog(t, policy{unix.SCHED_FIFO, 1}, false)
			return waiting
		}},
	} {
		t.Run(c.waitsFor, func(t *testing.T) {
			waiting := c.begin(t)
			wait := func() status.Wait {
				all := look(t).Waits
				return all[slices.IndexFunc(all, func(w status.Wait) bool { return w.For == c.waitsFor })]
			}
			eventually(t, "one that waits for "+c.waitsFor+" is told", func() bool {
				w := wait()
				isOurs := func(s *spinner) bool { return s.pid == w.Thread }
				told := slices.ContainsFunc(waiting, isOurs)
				if c.waitsFor == "a real-time task" {
					told = told || w.Thread == 0 // a thread of the kernel, perhaps, in the CPU's own queue: nobody can tell which
				}
				return w.UnderWaySeconds >= 0.01 && w.LongestSeconds >= w.UnderWaySeconds && told
			})
			for _, s := range waiting {
				s.end()
			}
			eventually(t, "nobody waits for "+c.waitsFor, func() bool { return wait().UnderWaySeconds == 0 })
			if longest := wait().LongestSeconds; longest < 0.01 || longest > 10 {
				t.Errorf("the longest wait for %s took %.3f s, want 0.01 to 10", c.waitsFor, longest)
			}
		})
	}
}
