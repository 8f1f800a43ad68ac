//go:build guest

package guest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/cgroup"
)

// spinner is a process that computes without an end, on all CPUs but where pinned to one.
type spinner struct {
	cmd   *exec.Cmd
	pid   int
	works io.Reader // what it prints; a spinner a byte once it has set its affinity, and works
}

// spin starts n spinners in a cgroup. They end with the test, unless it has ended them.
func spin(t *testing.T, cg string, n int) []*spinner {
	t.Helper()
	var list []*spinner
	for range n {
		s := &spinner{cmd: exec.Command("spin", "0", strconv.Itoa(runtime.NumCPU()))}
		s.cmd.Env = []string{"LADDER_DIR=" + os.TempDir()} // where it counts its work; nobody here looks
		s.start(t)
		list = append(list, s)
	}
	// They start in this process's tier: in a low one they might not get that far.
	for _, s := range list {
		if _, err := s.works.Read(make([]byte, 1)); err != nil {
			t.Fatalf("the spinner ended before it worked: %v", err)
		}
		s.moveTo(t, cg)
	}
	return list
}

// start starts the program until the test ends.
func (s *spinner) start(t *testing.T) {
	t.Helper()
	s.cmd.Stderr = os.Stderr
	works, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.works, s.pid = works, s.cmd.Process.Pid
	t.Cleanup(s.end)
}

// state is the kernel's letter: R, S, T, Z, ...
func (s *spinner) state(t *testing.T) string {
	t.Helper()
	return strings.Fields(read(t, fmt.Sprintf("/proc/%d/stat", s.pid)))[2]
}

// end ends the process. It leaves its tier first: that a low tier does not keep a task from dying has
// a test of its own, and must not hang the others.
func (s *spinner) end() {
	if s.cmd.ProcessState == nil {
		_ = os.WriteFile(root.Cgroup("/cgroup.procs"), []byte(strconv.Itoa(s.pid)), 0)
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

func (s *spinner) pin(t *testing.T, cpu int) {
	t.Helper()
	bind(t, s.pid, []int{cpu})
}

// bind lets a thread run on these CPUs alone.
func bind(t *testing.T, tid int, cpus []int) {
	t.Helper()
	set := cpuSet(cpus...)
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		t.Fatal(err)
	}
}

func cpuSet(cpus ...int) (set unix.CPUSet) {
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return set
}

func firstCPUs(n int) (list []int) {
	for cpu := range n {
		list = append(list, cpu)
	}
	return list
}

// bindSelf keeps this process and what it starts off the other CPUs until the test ends.
func bindSelf(t *testing.T, cpus []int) {
	t.Helper()
	each := func(cpus []int) {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			tid, err := strconv.Atoi(thread.Name())
			if err != nil {
				t.Fatal(err)
			}
			bind(t, tid, cpus)
		}
	}
	t.Cleanup(func() { each(firstCPUs(runtime.NumCPU())) })
	each(cpus)
}

func (s *spinner) nice(t *testing.T, nice int) {
	t.Helper()
	if err := unix.Setpriority(unix.PRIO_PROCESS, s.pid, nice); err != nil {
		t.Fatal(err)
	}
}

func (s *spinner) moveTo(t *testing.T, cg string) {
	t.Helper()
	write(t, root.Cgroup(cg+"/cgroup.procs"), strconv.Itoa(s.pid))
}

// cpuTime is the process's CPU clock, read through its id: exact to the nanosecond, where a cgroup's
// cpu.stat lacks what has run since the last tick.
func (s *spinner) cpuTime(t *testing.T) time.Duration {
	t.Helper()
	const schedClock = 2
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^s.pid<<3|schedClock), &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// runs is how often the process has been given a CPU.
func (s *spinner) runs(t *testing.T) int {
	t.Helper()
	return s.schedstat(t, 2)
}

// waited is for how long the task was runnable and not run.
func (s *spinner) waited(t *testing.T) time.Duration {
	t.Helper()
	return time.Duration(s.schedstat(t, 1))
}

func (s *spinner) schedstat(t *testing.T, field int) int {
	t.Helper()
	fields := strings.Fields(read(t, fmt.Sprintf("/proc/%d/schedstat", s.pid)))
	n, err := strconv.Atoi(fields[field])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// used lets the spinners run until together they have had d of CPU time, and returns the share of
// each group. It counts CPU time, not the clock: the emulator's host has other things to do.
func used(t *testing.T, d time.Duration, groups ...[]*spinner) []float64 {
	t.Helper()
	sample := func() (total time.Duration, each []time.Duration) {
		for _, g := range groups {
			var sum time.Duration
			for _, s := range g {
				sum += s.cpuTime(t)
			}
			total += sum
			each = append(each, sum)
		}
		return total, each
	}
	before, first := sample()
	var total time.Duration
	var last []time.Duration
	eventually(t, "the spinners have run", func() bool { total, last = sample(); return total-before >= d })
	shares := make([]float64, len(groups))
	for i := range groups {
		shares[i] = float64(last[i]-first[i]) / float64(total-before)
	}
	return shares
}

// controlledCgroup makes a cgroup for the time of the test, with the cpu controller on down to it.
func controlledCgroup(t *testing.T, cg string) {
	t.Helper()
	makeCgroup(t, cg)
	if _, err := cgroup.EnableCPU(root, cg); err != nil {
		t.Fatal(err)
	}
}

// joinSystem moves this process into a cgroup of system.slice, so that it can watch a node that is
// full of critical work. Nobody maps system.slice: it is the scheduler's own default that helps here.
func joinSystem(t *testing.T) {
	t.Helper()
	const self = "/system.slice/test"
	controlledCgroup(t, self)
	write(t, root.Cgroup(self+"/cgroup.procs"), "0")
	t.Cleanup(func() { write(t, root.Cgroup("/cgroup.procs"), "0") })
}

// tierFlags map /critical and /background.
func tierFlags() []string {
	return []string{"--tier", "critical=" + root.Cgroup("/critical"), "--tier", "background=" + root.Cgroup("/background")}
}

// attachTiers attaches the scheduler with cgroups /critical, /standard and /background in their tiers.
func attachTiers(t *testing.T, args ...string) *loader {
	t.Helper()
	joinSystem(t)
	for _, cg := range cgroupsOfTiers {
		controlledCgroup(t, cg)
	}
	return attach(t, append(tierFlags(), args...)...)
}

var cgroupsOfTiers = []string{"/critical", "/standard", "/background"}

// cat starts a process that repeats what it is told, until the test ends.
func cat(t *testing.T) (pid int, in io.Writer, out io.Reader) {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error("cat: ", err)
		}
	})
	return cmd.Process.Pid, stdin, stdout
}
