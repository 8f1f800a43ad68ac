package agent

import (
	"os"
	"reflect"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
