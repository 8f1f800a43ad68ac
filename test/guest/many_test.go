//go:build guest

package guest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The deterministic machine of these tests has three CPUs; the first is for what is measured.

// Six hundred tasks that may not run on a CPU do not cost those that do: a pair that sleeps and wakes each other there
// makes as many round trips as beside two.
func TestTimedAffineCrowd(t *testing.T) {
	for _, c := range []struct {
		pair, crowd string
		least       float64 // of the round trips beside two
	}{
		{"/critical", "/background", 0.97},
		{"/background", "/standard", 0.9},
	} {
		t.Run(c.pair+" beside "+c.crowd, func(t *testing.T) {
			attachWithTimersOn(t, 2) // what looks cost is TestTimedTenThousandAreLookedAt's
			few := roundTrip(t, c.pair, c.crowd, 2)
			many := roundTrip(t, c.pair, c.crowd, 600)
			t.Logf("a round trip takes %v beside 2, %v beside 600: %.3f", few, many, float64(few)/float64(many))
			if float64(few) < c.least*float64(many) {
				t.Errorf("%.3f of the round trips, want %.2f", float64(few)/float64(many), c.least)
			}
		})
	}
}

func roundTrip(t *testing.T, pair, crowd string, n int) time.Duration {
	t.Helper()
	end := startCrowd(t, crowd, n, 1, 2)
	defer end()
	pair += "/critical" // by this name the program knows its own cgroup, whatever its tier
	controlledCgroup(t, pair)
	out := outputIn(t, pair, "cost", "pipe", "400", "3")
	ns, err := strconv.ParseFloat(string(bytes.TrimSpace(bytes.TrimPrefix(out, []byte("ns=")))), 64)
	if err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return time.Duration(ns)
}

// However many tasks wait below, a critical task runs as soon as beside two: nobody walks past all of them while it waits.
func TestTimedTenThousandWait(t *testing.T) {
	attachWithTimersOn(t, 2)
	few, many := latenessBeside(t, 2, 3), latenessBeside(t, 10000, 3)
	t.Logf("late beside 2: %v; beside 10,000: %v; want p99.9 within 1.1, max within 2", few, many)
	if float64(many.p999) > 1.1*float64(few.p999) || many.longest > 2*few.longest {
		t.Error("it is late for longer beside 10,000")
	}
}

// Where the timers of the scheduler expire on the critical task's own CPU, it waits for one look at a time.
func TestTimedTenThousandAreLookedAt(t *testing.T) {
	attachWithTimersOn(t, 0)
	few, many := latenessBeside(t, 2, 1), latenessBeside(t, 10000, 1)
	t.Logf("late beside 2: %v; beside 10,000: %v; want p99 within 1.3", few, many)
	if float64(many.p99) > 1.3*float64(few.p99) {
		t.Error("it is late for longer beside 10,000")
	}
}

// No program runs for longer than it may, waits for locks and interrupts among that. The crowd is bound to two CPUs of three.
func TestTimedLongestPaths(t *testing.T) {
	controlledCgroup(t, "/limited")
	write(t, root.Cgroup("/limited/cpu.max"), "5000 100000")
	attachTiers(t)
	runs := watchRuns(t)
	end := startCrowd(t, "/background", 10000, 0, 1)
	defer end()
	spin(t, "/limited", 200)
	measureLateness(t, 1000)
	checkRuns(t, runs)
}

// attachWithTimersOn attaches a scheduler whose timers expire on one CPU, and which itself runs on the third. Left alone, timers
// are moved to where the kernel likes, and what a look costs is seen on the measured CPU or not, by chance.
func attachWithTimersOn(t *testing.T, cpu int) {
	t.Helper()
	const migration = "/proc/sys/kernel/timer_migration"
	write(t, migration, "0")
	t.Cleanup(func() { write(t, migration, "1") })
	bindSelf(t, []int{cpu}) // where the first is started all are
	l := attachTiers(t)
	bindSelf(t, []int{2})
	bind(t, l.cmd.Process.Pid, []int{2})
}

// lateness is by how much a task runs later than it meant to.
type lateness struct{ p50, p99, p999, longest time.Duration }

func (l lateness) String() string {
	return fmt.Sprintf("%v (p50), %v (p99), %v (p99.9), %v (longest)", l.p50, l.p99, l.p999, l.longest)
}

// latenessBeside is of a critical task on the first CPU, beside so many background threads on two: of each figure, the median of
// some windows. Two threads fill two CPUs as thousands do: beside an idle CPU, what is compared would be whether one has to be
// interrupted at all. The third is for those who wake up now and then, such as scx_temper.
func latenessBeside(t *testing.T, n, windows int) lateness {
	t.Helper()
	end := startCrowd(t, "/background", n, 0, 1)
	defer end()
	all := make([]lateness, windows)
	for w := range all {
		all[w] = measureLateness(t, 4000)
	}
	median := func(figure func(lateness) time.Duration) time.Duration {
		slices.SortFunc(all, func(a, b lateness) int { return cmp.Compare(figure(a), figure(b)) })
		return figure(all[windows/2])
	}
	return lateness{
		median(func(l lateness) time.Duration { return l.p50 }),
		median(func(l lateness) time.Duration { return l.p99 }),
		median(func(l lateness) time.Duration { return l.p999 }),
		median(func(l lateness) time.Duration { return l.longest }),
	}
}

// measureLateness is of a critical task that wakes up so often on the first CPU, each millisecond or so.
func measureLateness(t *testing.T, wakes int) (l lateness) {
	t.Helper()
	out := outputIn(t, "/critical", "lateness", strconv.Itoa(wakes), "0")
	if _, err := fmt.Sscan(string(out), &l.p50, &l.p99, &l.p999, &l.longest); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return l
}

// startCrowd starts n threads that compute on some CPUs.
func startCrowd(t *testing.T, cg string, n, first, last int) (end func()) {
	t.Helper()
	s := &spinner{cmd: exec.Command("crowd", strconv.Itoa(n), strconv.Itoa(first), strconv.Itoa(last))}
	begin, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.start(t)
	if _, err := s.works.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the crowd ended before it was there: %v", err)
	}
	s.moveTo(t, cg)
	begin.Close()
	return s.end
}

// outputIn runs a program in a cgroup to its end.
func outputIn(t *testing.T, cg, program string, args ...string) []byte {
	t.Helper()
	dir, err := os.Open(root.Cgroup(cg))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	cmd.Env = append(os.Environ(), "LADDER_CGROUPS="+path.Dir(root.Cgroup(cg)))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(program, err)
	}
	return out
}
