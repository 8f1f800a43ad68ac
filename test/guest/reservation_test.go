//go:build guest

package guest

import (
	"fmt"
	"math"
	"runtime"
	"syscall"
	"testing"

	"temper.dev/temper/internal/node/enforce"
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
				if math.Abs(share-due) > 0.04*due {
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

// What is reserved changes while the scheduler is attached, as pods come and go: shares follow, and what a far larger
// reservation has left (51 s of CPU time) counts no more once there is a smaller one.
func TestTimedSharesFollowTheReservation(t *testing.T) {
	joinSystem(t)
	controlledCgroup(t, "/critical")
	controlledCgroup(t, "/standard")
	attach(t, "--reservation", "0", "--tier", "critical="+root.Cgroup("/critical"))
	seq := kernel(t).EnableSeq
	cpus := float64(runtime.NumCPU())
	critical, standard := spin(t, "/critical", 2*runtime.NumCPU()), spin(t, "/standard", 2*runtime.NumCPU())
	reserved := 0.
	for step, next := range []float64{0, 512, 0.5, 2, 0} {
		if step > 0 {
			reserve(t, next)
			reserved = next
		}
		used(t, second(), critical, standard) // what they owe each other from before
		share := used(t, 2*second(), critical, standard)[0]
		t.Logf("%g CPUs reserved: critical has %.4f of the node", reserved, share)
		due := (reserved + (cpus-reserved)/2) / cpus
		if reserved >= cpus {
			if share < 1-mostStandard {
				t.Errorf("all is reserved, and critical has %.4f", share)
			}
		} else if math.Abs(share-due) > 0.04*due {
			t.Errorf("%g CPUs are reserved: critical has %.4f, not %.4f", reserved, share, due)
		}
	}
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Errorf("the scheduler was attached anew: %+v, enable_seq was %d", s, seq)
	}
}

// reserve writes what is reserved as the agent does.
func reserve(t *testing.T, cpus float64) {
	t.Helper()
	m, err := enforce.OpenTierMap(root.Pins())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Reserve(uint64(cpus * 1000))
}

// How much is reserved is no matter of who attached the scheduler; whether anything is, the verifier has made use of.
func TestAReservationIsAdopted(t *testing.T) {
	l := attach(t, "--reservation", "2.5")
	seq := kernel(t).EnableSeq
	reserved := func(want uint64) {
		t.Helper()
		if s := snapshot(t); s.Info.Reservation != 1 || s.Control.ReservationMCPU != want {
			t.Errorf("%+v, %+v; %d are to be reserved", s.Info, s.Control, want)
		}
	}
	reserved(2500)
	reserve(t, 7)
	reserved(7000)
	l.leave(t, syscall.SIGKILL)
	reserved(7000)
	l = adoptedBy(t, seq, "--reservation", "0")
	reserved(0)
	l.leave(t, syscall.SIGKILL)
	l = startLoader(t)
	if e := l.next(t); e.Event != enforce.EventAttached || e.Adopted || kernel(t).EnableSeq == seq {
		t.Errorf("without a reservation the same scheduler stays: %+v", e)
	}
	if s := snapshot(t); s.Info.Reservation != 0 {
		t.Errorf("%+v", s.Info)
	}
}

func TestAgentChangesTheReservation(t *testing.T) {
	a := startAgent(t, "reservation: 2.5\n")
	a.await(enforce.SCX)
	seq, pid := kernel(t).EnableSeq, loaderPID(t)
	for _, cpus := range []float64{0.5, 3} {
		write(t, a.config, fmt.Sprintf("reservation: %g\n", cpus))
		if err := a.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprintf("%g CPUs are reserved", cpus), func() bool { return look(t).Loader.ReservationCPUs == cpus })
	}
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq || loaderPID(t) != pid {
		t.Errorf("scx_temper was started anew: %+v, enable_seq was %d, its process %d", s, seq, pid)
	}
}
