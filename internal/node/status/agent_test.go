package status

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/enforce"
)

// quiet is a watcher that never tells anything.
type quiet struct{ changed chan struct{} }

func (quiet) Follow([]string) (bool, error) { return false, nil }
func (q quiet) Changed() <-chan struct{}    { return q.changed }
func (quiet) Close() error                  { return nil }

// said is what an agent of the node has written.
func said(root host.Root) func() (*agent.State, error) {
	return func() (*agent.State, error) { return agent.ReadState(root) }
}

// TestRunningAgent asks while an agent runs whose scx_temper cannot be started.
func TestRunningAgent(t *testing.T) {
	root := fixture.Tree(t)
	fixture.Write(t, root, "/config", "tiers: {critical: {cgroups: [/later]}}\nfallback: none\n")
	started := make(chan struct{}, 100)
	kernel := agent.Kernel{
		StartLoader: func([]string) (agent.Loader, error) { started <- struct{}{}; return nil, errors.New("no loader here") },
		Detach:      func() error { return nil },
	}
	log := slog.New(slog.DiscardHandler)
	source, err := agent.NewFileSource(root, root.Path("/config"), agent.MustBeThere, log)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(root, source, kernel, quiet{}, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- a.Run(ctx, make(chan os.Signal)) }()
	<-started
	<-started // so the first failure is written down

	s := Gather(Sources{Root: root, Agent: said(root), Maps: noMaps})
	if !s.Agent.Running || s.Agent.PID != os.Getpid() || s.Rung != enforce.Observe || s.Enforced || s.Since == nil ||
		!strings.Contains(s.Reason, "no loader here") || len(s.Exits) == 0 || len(s.Cgroups) != 1 || s.Cgroups[0].Present {
		t.Errorf("%+v", s)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := Gather(Sources{Root: root, Agent: said(root), Maps: noMaps}); s.Agent.Running || s.Since != nil || !strings.Contains(s.Reason, "stopped") {
		t.Errorf("after the end: %+v", s)
	}
}

func TestDeadAgentLeavesIdle(t *testing.T) {
	root := fixture.Node(t, fixture.Files{"/run/temper/idle.json": `{"/batch": {"id": 1, "cpu.weight": "100"}}`})
	if s := Gather(Sources{Root: root, Agent: said(root), Maps: noMaps}); s.Rung != enforce.CPUIdle {
		t.Errorf("rung %s: %s", s.Rung, s.Reason)
	}
}

// A node that is left alone on purpose says so, also where the agent is gone or has not acted on it.
func TestOff(t *testing.T) {
	const none, byNode = `{}`, `{"off": {"reason": "SafeModeNode", "message": "safe mode: of the node"}}`
	for _, c := range []struct {
		what          string
		said          string // by the agent; "": there never was one
		running, file bool
		want          string // "": no series
	}{
		{"no agent", "", false, false, ""},
		{"no agent, safe mode", "", false, true, "SafeModeFile"},
		{"an agent", none, true, false, ""},
		{"an agent in safe mode by its node", byNode, true, false, "SafeModeNode"},
		{"an agent that has not acted on the file", none, true, true, "SafeModeFile"},
		{"an agent that has ended in safe mode by its node", byNode, false, false, ""},
		{"an agent that has ended, safe mode", none, false, true, "SafeModeFile"},
	} {
		root := fixture.Tree(t)
		if c.file {
			fixture.Write(t, root, agent.SafeModeFile, "why\n")
		}
		if c.said != "" {
			fixture.Write(t, root, "/run/temper/"+agent.StateFile, c.said)
		}
		if c.running {
			holdLock(t, root)
		}
		want := ""
		if c.want != "" {
			want = `temper_off{reason="` + c.want + `"} 1`
		}
		text := string(scrape(t, Gather(Sources{Root: root, Agent: said(root), Maps: noMaps})))
		var got string
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "temper_off") {
				got += strings.TrimSpace(line)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", c.what, got, want)
		}
	}
}

// holdLock holds the lock of an agent that runs.
func holdLock(t *testing.T, root host.Root) {
	t.Helper()
	fixture.Write(t, root, "/run/temper/agent.lock", "")
	lock, err := os.OpenFile(root.Run("agent.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := unix.FcntlFlock(lock.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
}
