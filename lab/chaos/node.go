package chaos

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
	"temper.dev/temper/internal/node/status"
)

const root = host.Root("/")

// agentFiles is where the agent under attack has its configuration and its log.
const agentFiles = "/run/chaos"

// victim is the temper agent under attack, and what the test has changed of its configuration.
type victim struct {
	cmd       *exec.Cmd
	ended     chan error
	mixed     tier.Tier     // of /mixed
	heartbeat time.Duration // the scheduler leaves if its loader gives no sign of life for so long
}

func (a *victim) configFile() string { return filepath.Join(agentFiles, "temper.yaml") }

func (a *victim) writeConfig() error {
	tiers := map[tier.Tier][]string{tier.Critical: {"/critical"}, tier.Background: {"/background"}}
	tiers[a.mixed] = append(tiers[a.mixed], "/mixed")
	text := fmt.Sprintf("heartbeatTimeout: %v\ntiers:\n", a.heartbeat)
	for _, t := range tier.All {
		text += fmt.Sprintf("  %v: { cgroups: [%s] }\n", t, strings.Join(tiers[t], ", "))
	}
	return os.WriteFile(a.configFile(), []byte(text), 0o644)
}

func (a *victim) start() error {
	a.cmd = exec.Command("temper", "agent", "--config", a.configFile())
	log, err := os.OpenFile(filepath.Join(agentFiles, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	a.cmd.Stderr = log
	if err := a.cmd.Start(); err != nil {
		return err
	}
	a.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(a.cmd, a.ended)
	return nil
}

func (a *victim) signal(s unix.Signal) error { return a.cmd.Process.Signal(s) }

func (a *victim) end(s unix.Signal) error {
	if err := a.signal(s); err != nil {
		return err
	}
	<-a.ended
	return nil
}

// said is whether the agent has ended, and the end of its log, for whoever has to find out why.
func (a *victim) said() string {
	end := "it runs"
	select {
	case err := <-a.ended:
		end = fmt.Sprintf("it has ended: %v", err)
	default:
	}
	text, err := os.ReadFile(filepath.Join(agentFiles, "log"))
	if err != nil {
		return err.Error()
	}
	return end + "; " + string(text[max(0, len(text)-2000):])
}

// await waits for a state of the node, which tells nobody when it changes.
func await(what string, within time.Duration, reached func() bool) error {
	for deadline := time.Now().Add(within); !reached(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s", within, what)
		}
	}
	return nil
}

// awaitEnforced waits for a scheduler that has a loader: one whose loader was killed is in force, but may be about to leave.
func awaitEnforced(within time.Duration) error {
	return await("the scheduler is attached, its agent says so, and its loader lives", within, func() bool {
		s, err := status.Now(root)
		return err == nil && s.Enforced && s.Agent.Running && s.Rung == enforce.SCX && s.Loader != nil && s.Loader.HeartbeatAgeS < 1
	})
}

// makeCgroup makes a cgroup with all controllers that chaos plays with, in it and below it.
func makeCgroup(cg string) error {
	if err := os.Mkdir(root.Cgroup(cg), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.WriteFile(root.Cgroup(cg+"/cgroup.subtree_control"), []byte("+cpu +cpuset"), 0)
}

// joinSystem moves this process where it keeps its share of the node whatever happens.
func joinSystem() error {
	if err := os.WriteFile(root.Cgroup("/cgroup.subtree_control"), []byte("+cpu +cpuset"), 0); err != nil {
		return err
	}
	for _, cg := range []string{"/system.slice", "/system.slice/chaos"} {
		if err := os.Mkdir(root.Cgroup(cg), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(root.Cgroup("/system.slice/cgroup.subtree_control"), []byte("+cpu"), 0); err != nil {
		return err
	}
	// While CPUs come and go the stock scheduler rules; the scheduler's loader must get on meanwhile. And so must the agent,
	// beside workers of system.slice: its unit has that weight (packaging/temper.service).
	for _, cg := range []string{"/system.slice", "/system.slice/chaos"} {
		if err := os.WriteFile(root.Cgroup(cg+"/cpu.weight"), []byte("10000"), 0); err != nil {
			return err
		}
	}
	return os.WriteFile(root.Cgroup("/system.slice/chaos/cgroup.procs"), []byte("0"), 0)
}

// complaints are the lines of the kernel's log that say that something is wrong.
func complaints() (list []string, err error) {
	log, err := os.OpenFile("/dev/kmsg", os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	for line := make([]byte, 8192); ; {
		n, err := unix.Read(int(log.Fd()), line)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return list, nil
		case errors.Is(err, unix.EPIPE): // older lines have been overwritten: read on
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.ErrUnexpectedEOF
		}
		_, text, _ := strings.Cut(string(line[:n]), ";")
		text, _, _ = strings.Cut(text, "\n")
		if isComplaint(text) {
			list = append(list, text)
		}
	}
}

var complaint = regexp.MustCompile(`\bBUG\b|WARNING:|Oops|\bstall(s|ed)?\b|hung_task|blocked for more than|lockup|general protection|runtime error|triggered exit`)

func isComplaint(line string) bool { return complaint.MatchString(line) }
