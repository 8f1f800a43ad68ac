//go:build guest

package guest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/node/enforce"
	"temper.dev/temper/internal/node/status"
)

// This program plays the real-time hog, and one that naps beside it: TestMain.
const (
	hogRole = "TEMPER_TEST_HOG"
	napRole = "TEMPER_TEST_NAP"
	// boostRole is a hog that has no policy of its own: it has the lock that a real-time thread waits for.
	boostRole = "TEMPER_TEST_BOOST"
)

// taken is the CPU that hogs take; the tests keep to the other.
const taken = 1

// policy is a thread's, as the kernel tells it.
type policy struct{ class, priority int }

func (p policy) String() string {
	return fmt.Sprintf("policy %d (reset on fork: %t), priority %d", p.class&^resetOnFork, p.class&resetOnFork != 0, p.priority)
}

const resetOnFork = 0x40000000 // SCHED_RESET_ON_FORK, of policies

// policyOf asks twice where the policy changed between its two questions, as it does when a turn begins or ends.
func policyOf(t *testing.T, tid int) policy {
	t.Helper()
	class := func() int {
		c, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		return int(c)
	}
	for {
		before := class()
		var param int32
		if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETPARAM, uintptr(tid), uintptr(unsafe.Pointer(&param)), 0); errno != 0 {
			t.Fatal(errno)
		}
		if class() == before {
			return policy{before, int(param)}
		}
	}
}

func setPolicy(tid int, p policy) error {
	param := int32(p.priority)
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), uintptr(p.class), uintptr(unsafe.Pointer(&param))); errno != 0 {
		return errno
	}
	return nil
}

// hog takes a CPU until the test ends. One that forks starts a child as soon as it is throttled, and prints its id.
func hog(t *testing.T, p policy, forks bool) *spinner {
	t.Helper()
	// A goroutine that is preempted would let the CPU go.
	t.Setenv("GODEBUG", "asyncpreemptoff=1")
	s := play(t, hogRole+"="+strconv.Itoa(p.class), strconv.Itoa(p.priority), strconv.FormatBool(forks))
	if _, err := s.works.Read(make([]byte, 1)); err != nil {
		t.Fatal("the hog does not run: ", err)
	}
	return s
}

func boosted(t *testing.T, priority int) *spinner {
	t.Helper()
	t.Setenv("GODEBUG", "asyncpreemptoff=1")
	s := play(t, boostRole+"="+strconv.Itoa(priority))
	if _, err := s.works.Read(make([]byte, 1)); err != nil {
		t.Fatal("the hog does not run: ", err)
	}
	return s
}

func beAHog(class, priority, forks string) {
	var p policy
	p.class, _ = strconv.Atoi(class)
	p.priority, _ = strconv.Atoi(priority)
	set := cpuSet(taken)
	runtime.LockOSThread()
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		panic(err)
	}
	if err := setPolicy(0, p); err != nil {
		panic(err)
	}
	os.Stdout.Write([]byte{'\n'})
	if forks == "true" {
		fmt.Println(forkLowered(p))
	}
	for {
	}
}

func beBoosted(priority string) {
	const lockPI = 6 | 128 // FUTEX_LOCK_PI, within the process
	var p policy
	p.class = unix.SCHED_FIFO
	p.priority, _ = strconv.Atoi(priority)
	runtime.LockOSThread()
	word := uint32(unix.Gettid()) // locked, by this thread
	ready := make(chan error)
	go func() {
		runtime.LockOSThread()
		ready <- setPolicy(0, p)
		_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&word)), lockPI, 0, 0, 0, 0)
		panic(errno)
	}()
	set := cpuSet(taken)
	if err := errors.Join(<-ready, unix.SchedSetaffinity(0, &set)); err != nil {
		panic(err)
	}
	os.Stdout.Write([]byte{'\n'})
	for {
	}
}

// forkLowered forks a child that sleeps for ever, at a moment when this thread is throttled, and returns its id.
func forkLowered(mine policy) int {
	lowered := func() bool {
		now, _, _ := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
		return int(now) != mine.class
	}
	for {
		if !lowered() {
			continue
		}
		// What Go offers starts a program as well, which takes longer than the turn of the others.
		child, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			panic(errno)
		}
		if child == 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
			for {
				_, _, _ = unix.RawSyscall(unix.SYS_PAUSE, 0, 0, 0)
			}
		}
		if lowered() {
			return int(child)
		}
		_ = unix.Kill(int(child), unix.SIGKILL)
	}
}

// beNapping wakes up over and over on the CPU that hogs take, and leaves it at once.
func beNapping() {
	set := cpuSet(taken)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		panic(err)
	}
	runtime.LockOSThread()
	for {
		pause := unix.Timespec{Nsec: 2e6}
		_ = unix.Nanosleep(&pause, nil)
	}
}

// besideAHog attaches the scheduler, keeps this process off the CPU that is to be taken, and binds a critical spinner to it.
func besideAHog(t *testing.T, args ...string) (*loader, *spinner) {
	t.Helper()
	l := attachTiers(t, args...)
	bindSelf(t, []int{0})
	s := spin(t, "/critical", 1)[0]
	s.pin(t, taken)
	return l, s
}

// hogs are those that the scheduler tells of.
func hogs(t *testing.T) []enforce.Hog {
	t.Helper()
	s, err := enforce.ReadPinned(root.Pins())
	if err != nil {
		t.Fatal(err)
	}
	return s.Hogs
}

// TestRealTimeHogsAreThrottled: one of the lowest priority, then one of the highest beside it. Without that, the kernel
// ejects the scheduler after 30 to 44 s.
func TestRealTimeHogsAreThrottled(t *testing.T) { throttleHogs(t, 45*time.Second) }

func TestNightlyRealTimeHogsAreThrottled(t *testing.T) { throttleHogs(t, 120*time.Second) }

func throttleHogs(t *testing.T, longerThanTheWatchdog time.Duration) {
	t.Helper()
	l, critical := besideAHog(t)
	seq := kernel(t).EnableSeq
	low, high := policy{unix.SCHED_FIFO | resetOnFork, 1}, policy{unix.SCHED_FIFO, 99}

	first := hog(t, low, false)
	isNamed(t, first, low.priority)
	second := hog(t, high, false)
	had := critical.cpuTime(t)
	for began := time.Now(); time.Since(began) < longerThanTheWatchdog; time.Sleep(20 * time.Millisecond) {
		for h, mine := range map[*spinner]policy{first: low, second: high} {
			if p := policyOf(t, h.pid); p != mine && p != (policy{unix.SCHED_IDLE | mine.class&resetOnFork, 0}) {
				t.Fatalf("the hog with %v has %v", mine, p)
			}
		}
	}
	share := float64(critical.cpuTime(t)-had) / float64(longerThanTheWatchdog)
	t.Logf("beside two hogs a critical task bound to their CPU had %.1f %% of it", 100*share)
	if share < 0.03 || share > 0.5 {
		t.Errorf("beside two hogs a critical task bound to their CPU had %.1f %% of it", 100*share)
	}
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Fatalf("the kernel says %+v, enable_seq was %d", s, seq)
	}
	isNamed(t, second, high.priority)
	l.leave(t, syscall.SIGTERM)
	for h, mine := range map[*spinner]policy{first: low, second: high} {
		if p := policyOf(t, h.pid); p != mine {
			t.Errorf("after scx_temper has left, the hog with %v has %v", mine, p)
		}
	}
}

// Against somebody who may set policies, and sets a hog's back all the time, nothing helps: what counts is that it is said.
func TestRealTimeHogThatIsSetBack(t *testing.T) {
	besideAHog(t)
	mine := policy{unix.SCHED_FIFO, 50}
	h := hog(t, mine, false)
	if kernelThrottles(t) { // and scx_temper never has to
		isNamed(t, h, mine.priority)
		return
	}
	const want = "cannot be RT-throttled: somebody sets its policy back as often as it is lowered"
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case <-ended:
				return
			default:
				_ = setPolicy(h.pid, mine)
			}
		}
	}()
	eventually(t, "temper status says: "+want, func() bool { return strings.Contains(strings.Join(look(t).Problems, "\n"), want) })
}

// kernelThrottles: does it have a server for sched_ext tasks, which gives them a turn before scx_temper would?
func kernelThrottles(t *testing.T) bool {
	t.Helper()
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		t.Fatal(err)
	}
	var rq *btf.Struct
	if err := kernel.TypeByName("rq", &rq); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(rq.Members, func(m btf.Member) bool { return m.Name == "ext_server" })
}

// isNamed waits until temper status and temper doctor name the hog.
func isNamed(t *testing.T, h *spinner, priority int) {
	t.Helper()
	named := fmt.Sprintf("thread %d), SCHED_FIFO of priority %d, keeps others from CPU %d", h.pid, priority, taken)
	eventually(t, "temper status names "+named, func() bool {
		s := look(t)
		is := func(r status.RealTime) bool {
			return r.CPU == taken && r.Thread == h.pid && r.Name != "" && r.Priority == priority && r.Starves && (r.RTThrottles > 0 || kernelThrottles(t))
		}
		return slices.ContainsFunc(s.RealTime, is) && strings.Contains(strings.Join(s.Problems, "\n"), named)
	})
	eventually(t, "temper doctor names it", func() bool {
		_, stdout, _ := temperCommand(t, "doctor")
		return strings.Contains(stdout, named)
	})
}

// TestTimedRealTimeHog: when it is told of, and what is left of its CPU to others.
func TestTimedRealTimeHog(t *testing.T) {
	_, critical := besideAHog(t)
	for _, c := range []struct {
		what  string
		least float64 // share of the CPU for a critical task that is bound to it
		start func() *spinner
	}{
		{"priority 1", 0.03, func() *spinner { return hog(t, policy{unix.SCHED_FIFO, 1}, false) }},
		{"priority 99", 0.03, func() *spinner { return hog(t, policy{unix.SCHED_FIFO, 99}, false) }},
		// Without the other's priority it has a share in the turn, as a task of its tier: system.
		{"the priority of one that waits for its lock", 0.02, func() *spinner { return boosted(t, 50) }},
	} {
		h := c.start()
		started := time.Now()
		eventually(t, "the scheduler tells of the hog", func() bool { return hogs(t)[taken].Process == int32(h.pid) })
		if told := time.Since(started); told > time.Second {
			t.Errorf("%s: told after %v", c.what, told)
		} else {
			t.Logf("%s: told after %v", c.what, told)
		}
		const turns = 4
		began, had, had1 := time.Now(), critical.cpuTime(t), hogs(t)[taken].Turns
		eventually(t, "it is throttled", func() bool { return hogs(t)[taken].Turns >= had1+turns })
		share := float64(critical.cpuTime(t)-had) / float64(time.Since(began))
		t.Logf("%s: a critical task bound to its CPU had %.2f %% of it", c.what, 100*share)
		if share < c.least || share > 0.08 {
			t.Errorf("%s: a critical task bound to its CPU had %.2f %% of it", c.what, 100*share)
		}
		h.end()
	}
}

// TestKilledLoaderLeavesNobodyThrottled: a loader dies while a task is lowered, and the next one gives its policy back.
func TestKilledLoaderLeavesNobodyThrottled(t *testing.T) {
	stays := []string{"--heartbeat-timeout", "60"} // a starved guest takes long to start the next
	l, _ := besideAHog(t, stays...)
	mine, lowered := policy{unix.SCHED_RR | resetOnFork, 7}, policy{unix.SCHED_IDLE | resetOnFork, 0}
	h := hog(t, mine, false)
	stops := time.Now().Add(patience)
	for policyOf(t, h.pid) != lowered {
		if time.Now().After(stops) {
			t.Fatal("the hog is not throttled")
		}
	}
	l.leave(t, syscall.SIGKILL)
	time.Sleep(200 * time.Millisecond)
	if p := policyOf(t, h.pid); p != lowered {
		t.Fatalf("the loader was not killed while the hog was lowered: it has %v", p)
	}
	next := startLoader(t, append(tierFlags(), stays...)...)
	if e := next.next(t); e.Event != enforce.EventAttached || !e.Adopted {
		t.Errorf("%+v", e)
	}
	eventually(t, "the hog has its policy back", func() bool { return policyOf(t, h.pid) == mine })
}

// TestWhoIsForkedByAThrottledTask: its policy is what it would be had its parent not been lowered just then.
func TestWhoIsForkedByAThrottledTask(t *testing.T) {
	attachTiers(t)
	bindSelf(t, []int{0})
	play(t, napRole+"=1") // it waits for the CPU, and in its turn leaves time to the hog
	for _, c := range []struct{ parent, child policy }{
		{policy{unix.SCHED_FIFO, 5}, policy{unix.SCHED_FIFO, 5}},
		{policy{unix.SCHED_FIFO | resetOnFork, 5}, policy{unix.SCHED_NORMAL, 0}},
	} {
		h := hog(t, c.parent, true)
		line, err := bufio.NewReader(h.works).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		child, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprintf("the child of a parent with %v has %v", c.parent, c.child), func() bool { return policyOf(t, child) == c.child })
		h.end()
		eventually(t, "the child has ended with it", func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
}
