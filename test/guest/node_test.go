//go:build guest

// Package guest tests Temper in a guest of the lab, as root, with the real kernel:
//
//	CGO_ENABLED=0 go test -c -tags guest -o build/guest.test ./test/guest
//	bin/temper-lab exec --file /t=build/guest.test -- /t -test.v
package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
	"temper.dev/temper/internal/node/status"
)

const root = host.Root("/")

// patience is for an emulated machine; what has a bound of its own is measured by its test.
const patience = 4 * time.Minute

// eventually waits until a state of the kernel or of a file, which tells nobody when it changes, is reached.
func eventually(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !reached(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s\n%+v", patience, what, look(t))
		}
	}
}

func kernel(t *testing.T) host.Scheduler {
	t.Helper()
	s, err := root.Scheduler()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// temperCommand runs temper to its end.
func temperCommand(t *testing.T, args ...string) (exitStatus int, stdout, stderr string) {
	t.Helper()
	return finish(t, exec.Command("temper", args...))
}

func finish(t *testing.T, cmd *exec.Cmd) (exitStatus int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// look is temper status --json.
func look(t *testing.T) status.Status {
	t.Helper()
	code, stdout, stderr := temperCommand(t, "status", "--json")
	var s status.Status
	if err := json.Unmarshal([]byte(stdout), &s); code != 0 || err != nil {
		t.Fatalf("temper status: %d, %v, %s", code, err, stderr)
	}
	return s
}

// agent is a running temper agent.
type agent struct {
	t      *testing.T
	cmd    *exec.Cmd
	config string
	args   []string
	inside func(*exec.Cmd) // nil, or where it is started: in namespaces of its own
	log    string          // file with what it and its scx_temper say
	ended  chan error
}

// startAgent starts an agent that is stopped, and checked to leave the stock scheduler, at the test's end.
func startAgent(t *testing.T, config string, args ...string) *agent {
	t.Helper()
	return startAgentInside(t, nil, config, args...)
}

// startAgentInside starts it where inside puts the command.
func startAgentInside(t *testing.T, inside func(*exec.Cmd), config string, args ...string) *agent {
	t.Helper()
	dir := t.TempDir()
	a := &agent{t: t, config: filepath.Join(dir, "temper.yaml"), args: args, inside: inside, log: filepath.Join(dir, "log")}
	if err := os.WriteFile(a.config, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	a.start()
	t.Cleanup(func() {
		a.end(syscall.SIGTERM)
		if s := kernel(t); s.State != "disabled" {
			t.Errorf("after the agent's end the kernel says %+v", s)
		}
		if t.Failed() {
			t.Logf("the agent said:\n%s", a.said())
		}
	})
	return a
}

func (a *agent) start() {
	a.t.Helper()
	a.cmd = exec.Command("temper", append([]string{"agent", "--config", a.config}, a.args...)...)
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		a.t.Fatal(err)
	}
	defer log.Close()
	a.cmd.Stderr = log
	if a.inside != nil {
		a.inside(a.cmd)
	}
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.ended = make(chan error, 1)
	go func(cmd *exec.Cmd) { a.ended <- cmd.Wait() }(a.cmd)
}

func (a *agent) said() string {
	a.t.Helper()
	return read(a.t, a.log)
}

// end sends the agent a signal and waits until it is gone.
func (a *agent) end(signal os.Signal) {
	if a.cmd == nil {
		return
	}
	a.cmd.Process.Signal(signal)
	<-a.ended
	a.cmd = nil
}

// await waits for a rung of this very agent.
func (a *agent) await(rung enforce.Rung) status.Status {
	a.t.Helper()
	var s status.Status
	eventually(a.t, "rung "+string(rung), func() bool {
		s = look(a.t)
		return s.Agent.PID == a.cmd.Process.Pid && s.Rung == rung && s.Enforced == (rung == enforce.SCX)
	})
	return s
}

// loaderPID is scx_temper's process id, from the agent's own state, 0 while it does not run.
func loaderPID(t *testing.T) int {
	t.Helper()
	var s struct {
		PID int `json:"loader_pid"`
	}
	data, err := os.ReadFile(root.Run("status.json"))
	if err != nil || json.Unmarshal(data, &s) != nil {
		return 0
	}
	return s.PID
}

// makeCgroup makes a cgroup, and its ancestors where they are missing, for the time of the test.
func makeCgroup(t *testing.T, cg string) {
	t.Helper()
	for _, dir := range append(cgroup.Ancestors(cg), cg) {
		if host.Exists(root.Cgroup(dir)) {
			continue
		}
		if err := os.Mkdir(root.Cgroup(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeCgroup(t, dir) })
	}
}

func removeCgroup(t *testing.T, cg string) {
	if err := os.Remove(root.Cgroup(cg)); err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
}

func write(t *testing.T, file, value string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := host.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// mapped is the tier map's entry for a cgroup.
func mapped(t *testing.T, cg string) (tier.Tier, bool) {
	t.Helper()
	id, err := cgroup.ID(root, cg)
	if err != nil {
		return 0, false
	}
	s, err := enforce.ReadPinned(root.Pins())
	if err != nil {
		t.Fatal(err)
	}
	got, ok := s.Tiers[id]
	return tier.Tier(got.Tier), ok
}
