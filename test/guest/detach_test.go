//go:build guest

package guest

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// This program plays tasks that spin and change their policy, over and over.
const flipRole = "TEMPER_TEST_FLIP"

func beFlipping() {
	runtime.LockOSThread()
	policies := [2]uintptr{unix.SCHED_BATCH, unix.SCHED_NORMAL}
	for round := 0; ; round++ {
		var param int32
		if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, policies[round%2], uintptr(unsafe.Pointer(&param))); errno != 0 {
			panic(errno)
		}
		if round == 0 {
			os.Stdout.Write([]byte{'.'})
		}
	}
}

// A task that changes its policy while the kernel detaches a scheduler is the stock scheduler's from then on,
// and comes before all that are not yet: also before the thread of RCU that the kernel waits for to go on.
// With one such spinner a CPU, 6.18 never gets done by itself.
func TestDetachesUnderTasksThatChangeTheirPolicy(t *testing.T) {
	l := attachTiers(t)
	for range 2 * runtime.NumCPU() {
		s := play(t, flipRole+"=1")
		if _, err := s.works.Read(make([]byte, 1)); err != nil {
			t.Fatal("the spinner does not run: ", err)
		}
	}
	if status := l.leave(t, syscall.SIGTERM); status != 0 {
		t.Fatalf("scx_temper left with %d", status)
	}
	if s := kernel(t); s.State != "disabled" {
		t.Fatalf("the kernel says %+v", s)
	}
}

// An agent that falls, or ends, has no scx_temper left that could be asked to detach.
func TestDetachesWhatItsLoaderLeft(t *testing.T) {
	l := attach(t)
	refused(t, exit.OtherScheduler, "stop it first", exec.Command("scx_temper", "--detach"))
	l.leave(t, syscall.SIGKILL)
	if s := kernel(t); !s.IsTemper() {
		t.Fatalf("the scheduler did not outlive its loader: %+v", s)
	}
	for _, what := range []string{"the orphan", "nothing"} {
		if status, _, stderr := finish(t, exec.Command("scx_temper", "--detach")); status != exit.OK {
			t.Errorf("detaching %s: left with %d: %s", what, status, stderr)
		}
		if s := kernel(t); s.State != "disabled" || host.Exists(root.Pins()) {
			t.Errorf("after detaching %s the kernel says %+v; pins: %t", what, s, host.Exists(root.Pins()))
		}
	}
}
