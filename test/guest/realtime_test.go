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
	if what := os.Getenv(ownerRole); what != "" {
		beOwner(what, os.Args[1])
	}
	os.Exit(m.Run())
}

// startRealTime starts a SCHED_FIFO task that takes CPU 0 for a millisecond of every three.
func startRealTime(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), realTimeRole+"=1")
	cmd.Stderr = os.Stderr
	ready, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if n, err := ready.Read(make([]byte, 1)); n != 1 {
		t.Fatal("the real-time task does not run: ", err)
	}
}

func beRealTime() {
	var set unix.CPUSet
	set.Set(0)
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
