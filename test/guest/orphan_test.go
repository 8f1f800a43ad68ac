//go:build guest

package guest

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/enforce"
)

// adoptedBy starts a scx_temper that finds the scheduler attached, and checks that nothing was interrupted.
func adoptedBy(t *testing.T, seq uint64, args ...string) *loader {
	t.Helper()
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Fatalf("the scheduler did not outlive its loader: %+v, enable_seq was %d", s, seq)
	}
	l := startLoader(t, args...)
	if e := l.next(t); e.Event != enforce.EventAttached || !e.Adopted {
		t.Errorf("not adopted: %+v", e)
	}
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Errorf("the scheduler was interrupted: %+v, enable_seq was %d", s, seq)
	}
	return l
}

func TestAdoption(t *testing.T) {
	makeCgroup(t, "/batch")
	l := attach(t)
	seq := kernel(t).EnableSeq
	l.leave(t, syscall.SIGKILL)
	l = adoptedBy(t, seq, "--tier", "background="+root.Cgroup("/batch"))
	if got, ok := mapped(t, "/batch"); !ok || got.String() != "background" {
		t.Errorf("the adopter's mapping: %v, %v", got, ok)
	}
	if s, err := enforce.ReadPinned(root.Pins()); err != nil || int(s.Info.LoaderPID) != l.cmd.Process.Pid {
		t.Errorf("%v: %+v", err, s)
	}
	if status := l.leave(t, syscall.SIGUSR1); status != exit.OK {
		t.Errorf("after SIGUSR1: %d", status)
	}
	l = adoptedBy(t, seq)
	if status := l.leave(t, syscall.SIGTERM); status != exit.OK {
		t.Errorf("after SIGTERM: %d", status)
	}
	if s := kernel(t); s.State != "disabled" {
		t.Errorf("after an adopter's SIGTERM: %+v", s)
	}
}

// An agent that dies while its scx_temper is loading leaves it, and the next agent starts another. None may spoil what
// the other pins: the first attaches and leaves, the second adopts what it has attached.
func TestTheNextLoaderAwaitsOneThatIsLoading(t *testing.T) {
	first := startLoader(t)
	eventually(t, "the first has the lock", func() bool { return pinsAreLocked(t) })
	second := startLoader(t)
	eventually(t, "the second waits", func() bool { return strings.Contains(read(t, second.stderr), "waiting for it") })
	if status := first.leave(t, syscall.SIGUSR1); status != exit.OK {
		t.Errorf("the first left with %d: %s", status, read(t, first.stderr))
	}
	if e := second.next(t); e.Event != enforce.EventAttached || !e.Adopted {
		t.Errorf("%+v", e)
	}
}

func pinsAreLocked(t *testing.T) bool {
	t.Helper()
	folder, err := os.Open(root.Pins())
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Fatal(err)
	}
	return err != nil
}

// With other options the scheduler cannot be adopted: its configuration is fixed when it is loaded.
func TestOtherOptionsReplaceTheScheduler(t *testing.T) {
	l := attach(t)
	seq := kernel(t).EnableSeq
	l.leave(t, syscall.SIGKILL)
	l = startLoader(t, "--system-share", "30")
	if e := l.next(t); e.Event != enforce.EventAttached || e.Adopted {
		t.Fatalf("%+v", e)
	}
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq+1 {
		t.Errorf("%+v, enable_seq was %d", s, seq)
	}
	if s, err := enforce.ReadPinned(root.Pins()); err != nil || s.Info.SystemSharePct != 30 {
		t.Errorf("%v: %+v", err, s)
	}
}

func TestOrphanLeaves(t *testing.T) {
	l := attach(t, "--heartbeat-timeout", "2")
	// The reason outlives the scheduler in its map, which whoever comes later can read.
	l.leave(t, syscall.SIGKILL)
	killed := time.Now()
	var left time.Duration
	eventually(t, "the orphan leaves", func() bool { left = time.Since(killed); return kernel(t).State == "disabled" })
	if left < time.Second { // how late it may be is not for a machine whose host has other work
		t.Errorf("it left after %v", left)
	}
	s, err := enforce.ReadPinned(root.Pins())
	if err != nil {
		t.Fatal(err)
	}
	if msg := enforce.Text(s.Exit.Msg[:]); s.Exit.Kind == 0 || !strings.Contains(msg, "no sign of life from the loader") {
		t.Errorf("kind %d, reason %q, message %q", s.Exit.Kind, enforce.Text(s.Exit.Reason[:]), msg)
	}
	// What it left behind does not stand in the way of the next.
	attach(t)
}

func TestHeartbeatKeepsTheSchedulerInPlace(t *testing.T) {
	l := attach(t, "--heartbeat-timeout", "2")
	select {
	case e := <-l.events:
		t.Errorf("%+v", e)
	case <-time.After(4 * time.Second):
	}
	if s := kernel(t); !s.IsTemper() {
		t.Errorf("%+v", s)
	}
}

func TestEjectionIsReported(t *testing.T) {
	l := attach(t)
	write(t, "/proc/sysrq-trigger", "S")
	if e := l.next(t); e.Event != enforce.EventExited || e.Kind == 0 || !strings.Contains(e.Reason, "sysrq") {
		t.Errorf("%+v", e)
	}
	if status := l.wait(); status != exit.Ejected {
		t.Errorf("left with %d", status)
	}
	if s := kernel(t); s.State != "disabled" {
		t.Errorf("%+v", s)
	}
}
