//go:build guest

package guest

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This program plays the real-time neighbour itself: it is its own child then.
const realTimeRole = "TEMPER_TEST_REAL_TIME"

func TestMain(m *testing.M) {
	if os.Getenv(realTimeRole) != "" {
		beRealTime()
	}
	if class := os.Getenv(hogRole); class != "" {
		beAHog(class, os.Args[1], os.Args[2])
	}
	if os.Getenv(napRole) != "" {
		beNapping()
	}
	if priority := os.Getenv(boostRole); priority != "" {
		beBoosted(priority)
	}
	if os.Getenv(largeRole) != "" {
		beLarge()
	}
	if os.Getenv(ringRole) != "" {
		beARing(os.Args[1])
	}
	if os.Getenv(vforkRole) != "" {
		beVforking()
	}
	if os.Getenv(boundByKernelRole) != "" {
		beBoundByKernel()
	}
	if os.Getenv(askerRole) != "" {
		beAnAsker()
	}
	if what := os.Getenv(ownerRole); what != "" {
		beOwner(what, os.Args[1])
	}
	if os.Getenv(wakesRole) != "" {
		wakeUp(os.Args[1], os.Args[2])
		return
	}
	if os.Getenv(flipRole) != "" {
		beFlipping()
	}
	os.Exit(m.Run())
}

// startRealTime starts a SCHED_FIFO task that takes CPU 0 for a millisecond of every three.
func startRealTime(t *testing.T) {
	t.Helper()
	if _, err := play(t, realTimeRole+"=1").works.Read(make([]byte, 1)); err != nil {
		t.Fatal("the real-time task does not run: ", err)
	}
}

// play starts this program again in a role of TestMain's, named by a variable, until the test ends.
func play(t *testing.T, role string, args ...string) *spinner {
	t.Helper()
	s := &spinner{cmd: exec.Command("/proc/self/exe", args...)}
	s.cmd.Env = append(os.Environ(), role, "GOMAXPROCS=1")
	s.start(t)
	return s
}

func beRealTime() {
	set := cpuSet(0)
	param := int32(10)
	runtime.LockOSThread()
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		panic(err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_FIFO, uintptr(unsafe.Pointer(&param))); errno != 0 {
		panic(errno)
	}
	os.Stdout.Write([]byte{1})
	for {
		for start := time.Now(); time.Since(start) < time.Millisecond; {
		}
		pause := unix.Timespec{Nsec: 2e6}
		// Not time.Sleep, which would leave the CPU to another of Go's threads.
		_ = unix.Nanosleep(&pause, nil)
	}
}
