package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
)

// Whatever is changed of a state is a change; what the agent goes on to do to its own is none of what it has told.
func TestStatesThatDiffer(t *testing.T) {
	at := time.Unix(1000, 0).UTC()
	full := func() State {
		retry := at
		return State{Started: at, PID: 1, Config: "c", Policy: "p", CriticalMilliCPU: 1, Reserved: new(int64), Rung: "scx", Reason: "r", Since: at,
			Off: &Off{Reason: "o"}, Loader: 1, Failures: 1, RetryAt: &retry, Members: []Member{{Cgroup: "/a", Tier: tier.Critical, ID: 1}},
			Problems: []string{"x"}, Exits: []Exit{{Time: at, Times: 1, Status: 7, Text: "t"}}}
	}
	if !full().equal(full()) {
		t.Error("two of the same are not equal")
	}
	for i := range reflect.TypeFor[State]().NumField() {
		changed := full()
		field := reflect.ValueOf(&changed).Elem().Field(i)
		name := reflect.TypeFor[State]().Field(i).Name
		if field.IsZero() {
			t.Fatalf("%s has no value in this test", name)
		}
		field.SetZero()
		if changed.equal(full()) || changed.EqualButMembers(full()) != (name == "Members") {
			t.Errorf("%s does not count", name)
		}
	}
	s := full()
	told := s.clone()
	s.Members[0].ID++
	s.Problems[0] = "y"
	s.addExit(Exit{Time: at.Add(time.Second), Status: 7, Text: "t"}, true)
	if !told.equal(full()) || s.Exits[0].Times != 2 {
		t.Errorf("what was told has become %+v", told)
	}
}

// Whoever asks the agent in its own process hears what its file says, also of the agent before it.
func TestStateInTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		n.attach(false)
		same := func() {
			t.Helper()
			if said, err := n.agent.State(); err != nil || !said.equal(*n.state()) {
				t.Errorf("it says %+v, %v, its file %+v", said, err, n.state())
			}
		}
		same()
		if err := os.RemoveAll(n.root.Cgroup("/batch")); err != nil {
			t.Fatal(err)
		}
		n.agent.SyncNow(t.Context())
		same()
		inode := func() uint64 {
			info, err := os.Stat(n.root.Run(StateFile))
			if err != nil {
				t.Fatal(err)
			}
			return info.Sys().(*syscall.Stat_t).Ino
		}
		before := inode() // which a file that is written anew has not: the old one is there until then
		n.agent.SyncNow(t.Context())
		if inode() != before {
			t.Error("it is written though nothing has changed")
		}
		n.finish()
		same()
		last := n.agent
		next, err := New(n.root, last.source, last.kernel, n, last.log)
		if err != nil {
			t.Fatal(err)
		}
		n.agent = next // which does not run yet
		same()
	})
}

// Who can open the lock's file can lock it, too, and keep all agents away. Others are told all the same whether an agent runs.
func TestOnlyRootMayOpenTheLock(t *testing.T) {
	root := fixture.Node(t, nil)
	for dir := string(root); dir != os.TempDir(); dir = filepath.Dir(dir) { // that of a test is closed to others
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fixture.Write(t, root, "/run/temper/agent.lock", "")
	if err := os.Chmod(root.Run(lockFile), 0o644); err != nil { // as an earlier version made it
		t.Fatal(err)
	}
	locked, err := lock(root)
	if err != nil {
		t.Fatal(err)
	}
	tell := func(when string, want bool) {
		t.Helper()
		text, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Fatal(err)
		}
		fixture.Write(t, root, "/proc/locks", string(text))
		asNobody(t, func() {
			if f, err := os.Open(root.Run(lockFile)); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s, opening the lock as nobody gives %v and %v, want %v", when, f, err, fs.ErrPermission)
			}
			if got := IsRunning(root); got != want {
				t.Errorf("%s, nobody is told that an agent runs: %t, want %t", when, got, want)
			}
		})
		if got := IsRunning(root); got != want {
			t.Errorf("%s, root is told that an agent runs: %t, want %t", when, got, want)
		}
	}
	tell("while an agent runs", true)
	if err := locked.Close(); err != nil {
		t.Fatal(err)
	}
	tell("after it has ended", false)
}

// asNobody does something without privileges, on a thread that ends with it.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	const nobody = 65534
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock it
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			done <- errno
			return
		}
		do()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
