package agent

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/enforce"
)

// fakeLoader is scx_temper as the agent sees it. The test decides what it says and when it ends.
type fakeLoader struct {
	events  chan enforce.Event
	outcome enforce.Outcome
	signals []os.Signal
	ignore  int // so many signals
	node    *fakeNode
}

func (l *fakeLoader) Events() <-chan enforce.Event { return l.events }
func (l *fakeLoader) Outcome() enforce.Outcome     { return l.outcome }
func (l *fakeLoader) PID() int                     { return 77 }

func (l *fakeLoader) Signal(signal os.Signal) error {
	l.signals = append(l.signals, signal)
	if l.ignore > 0 {
		l.ignore--
		return nil
	}
	if signal == syscall.SIGTERM {
		l.node.setAttached(false)
	}
	l.end(exit.OK)
	return nil
}

func (l *fakeLoader) end(status int) {
	l.outcome = enforce.Outcome{Status: status, Text: "ended by the test"}
	close(l.events)
}

// fakeNode is a node of fixtures with a kernel that always does what it is asked.
type fakeNode struct {
	t            *testing.T
	agent        *Agent
	root         host.Root
	starts       []([]string)
	loaders      chan *fakeLoader
	startError   error
	entries      map[uint64]enforce.Assignment
	reserved     []uint64 // what was written
	changed      chan struct{}
	detach       int
	pinError     error // why nothing can be pinned
	optionsError error // why scx_temper would not start
	stop         context.CancelFunc
	signals      chan os.Signal
	done         chan error
}

const configPath = "/etc/temper/temper.yaml"

// start runs an agent in the current synctest bubble.
func start(t *testing.T, config string, cgroups ...string) *fakeNode {
	t.Helper()
	n := &fakeNode{t: t, root: fixture.Tree(t, cgroups...), loaders: make(chan *fakeLoader, 100),
		entries: map[uint64]enforce.Assignment{}, changed: make(chan struct{}, 1)}
	fixture.Write(t, n.root, "/sys/kernel/sched_ext/enable_seq", "0")
	fixture.Write(t, n.root, "/sys/kernel/sched_ext/nr_rejected", "0")
	n.setAttached(false)
	fixture.Write(t, n.root, configPath, config)
	n.startAgent()
	return n
}

// startAgent starts an agent, the first or one that follows.
func (n *fakeNode) startAgent() {
	n.t.Helper()
	kernel := Kernel{
		StartLoader: n.startLoader,
		OpenTiers:   func() (enforce.TierMap, error) { return n, nil },
		Detach:      func() error { n.detach++; n.setAttached(false); return nil },
		TryPins:     func() error { return n.pinError },
		CheckLoader: func([]string) error { return n.optionsError },
	}
	log := slog.New(slog.DiscardHandler)
	source, err := NewFileSource(n.root, n.root.Path(configPath), MustBeThere, log)
	if err != nil {
		n.t.Fatal(err)
	}
	a, err := New(n.root, source, kernel, n, log)
	if err != nil {
		n.t.Fatal(err)
	}
	n.agent = a
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.signals, n.done = stop, make(chan os.Signal), make(chan error, 1)
	go func(done chan error, signals chan os.Signal) { done <- a.Run(ctx, signals) }(n.done, n.signals)
}

func (n *fakeNode) startLoader(args []string) (Loader, error) {
	n.starts = append(n.starts, args)
	if n.startError != nil {
		return nil, n.startError
	}
	l := &fakeLoader{events: make(chan enforce.Event), node: n}
	n.loaders <- l
	return l, nil
}

// attach lets the next scx_temper attach, and waits until the agent has dealt with it.
func (n *fakeNode) attach(adopted bool) *fakeLoader {
	l := <-n.loaders
	n.setAttached(true)
	l.events <- enforce.Event{Event: enforce.EventAttached, Adopted: adopted}
	synctest.Wait()
	return l
}

func (n *fakeNode) setAttached(on bool) {
	if on {
		fixture.Write(n.t, n.root, "/sys/kernel/sched_ext/state", "enabled\n")
		fixture.Write(n.t, n.root, "/sys/kernel/sched_ext/root/ops", "temper\n")
		return
	}
	fixture.Write(n.t, n.root, "/sys/kernel/sched_ext/state", "disabled\n")
	os.RemoveAll(n.root.SchedExt("root"))
}

// safeMode asks for it by its file, and waits until the agent has dealt with it.
func (n *fakeNode) safeMode(why string) {
	n.t.Helper()
	fixture.Write(n.t, n.root, SafeModeFile, why)
	n.changed <- struct{}{}
	synctest.Wait()
}

func (n *fakeNode) state() *State {
	n.t.Helper()
	s, err := ReadState(n.root)
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

func (n *fakeNode) finish() {
	n.t.Helper()
	n.stop()
	if err := <-n.done; err != nil {
		n.t.Error(err)
	}
}

// expect checks the rung and the cpu.idle of /batch.
func (n *fakeNode) expect(rung enforce.Rung, idle string) {
	n.t.Helper()
	if s := n.state(); s.Rung != rung {
		n.t.Errorf("rung %s (%s), want %s", s.Rung, s.Reason, rung)
	}
	if got := fixture.Read(n.t, n.root, "/sys/fs/cgroup/batch/cpu.idle"); got != idle {
		n.t.Errorf("cpu.idle of /batch is %s, want %s", got, idle)
	}
}

// The tier map.

func (n *fakeNode) Entries() (map[uint64]enforce.Assignment, error) {
	return maps.Clone(n.entries), nil
}
func (n *fakeNode) Set(id uint64, a enforce.Assignment) error { n.entries[id] = a; return nil }
func (n *fakeNode) Delete(id uint64) error                    { delete(n.entries, id); return nil }
func (n *fakeNode) Publish()                                  {}
func (n *fakeNode) Reserve(milliCPU uint64)                   { n.reserved = append(n.reserved, milliCPU) }
func (n *fakeNode) Close() error                              { return nil }

// The watcher.

func (n *fakeNode) Follow([]string) (bool, error) { return false, nil }
func (n *fakeNode) Changed() <-chan struct{}      { return n.changed }
