package enforce

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/config"
)

// Kinds of Event.
const (
	EventAttached = "attached"
	EventExited   = "exited" // the kernel has thrown the scheduler out
	EventError    = "error"
)

// KindStall is the Event.Kind of a scheduler that the watchdog of sched_ext has thrown out: SCX_EXIT_ERROR_STALL.
const KindStall = 1026

// Event is a line of scx_temper --json.
type Event struct {
	Event    string `json:"event"`
	Adopted  bool   `json:"adopted"`
	PID      int    `json:"pid"`
	Kind     int    `json:"kind"`
	ExitCode int64  `json:"exit_code"`
	Reason   string `json:"reason"`
	Status   int    `json:"status"`
	Message  string `json:"message"`
}

// Outcome is how scx_temper ended.
type Outcome struct {
	Status int    // exit status; 128 + signal if a signal killed it
	Text   string // for people
}

// Loader is a running scx_temper.
type Loader struct {
	cmd     *exec.Cmd
	events  chan Event
	outcome Outcome // valid once events is closed
}

// Args are scx_temper's arguments for a configuration.
func Args(cfg *config.Config, pins string) []string {
	args := []string{"--json", "--pin", pins,
		"--heartbeat-timeout", strconv.Itoa(int(cfg.HeartbeatTimeout / time.Second)),
		"--system-share", strconv.Itoa(cfg.SystemShare), "--limits", cfg.Limits}
	if cfg.Reservation != nil {
		args = append(args, "--reservation", strconv.FormatFloat(float64(*cfg.Reservation)/1000, 'f', -1, 64))
	}
	if !cfg.Fence.IsEmpty() {
		args = append(args, "--fence", cfg.Fence.String(), "--loans", cfg.Loans)
	}
	if cfg.SMT == config.SMTExclusive {
		args = append(args, "--smt", cfg.SMT)
	}
	return args
}

// Check asks scx_temper whether it could start here with these arguments. It loads nothing.
func Check(path string, args []string) error {
	out, err := exec.Command(path, append(slices.Clone(args), "--check")...).Output()
	if err == nil {
		return nil
	}
	var e Event
	for line := range bytes.Lines(out) {
		if json.Unmarshal(line, &e) == nil && e.Event == EventError {
			return errors.New(e.Message)
		}
	}
	return fmt.Errorf("%s --check: %w", path, err)
}

// NeedsRestart tells whether a scx_temper that runs with one configuration must be restarted for another. Not where they differ
// in nothing, or in what is written while it runs (TierMap.Reserve).
func NeedsRestart(running, wanted *config.Config) bool {
	return !slices.Equal(fixedArgs(running), fixedArgs(wanted))
}

// fixedArgs are those arguments that hold for the life of a scx_temper.
func fixedArgs(cfg *config.Config) []string {
	of := *cfg
	if of.Reservation != nil {
		of.Reservation = new(int64(0))
	}
	return Args(&of, "")
}

// Start starts scx_temper; what it says to people goes to stderr. Should this process die, the
// kernel sends scx_temper SIGUSR1, upon which it leaves the scheduler attached for the next agent.
func Start(path string, args []string, stderr io.Writer) (*Loader, error) {
	l := &Loader{cmd: exec.Command(path, args...), events: make(chan Event)}
	l.cmd.Stderr = stderr
	// No signal from a terminal: the agent decides how scx_temper ends.
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGUSR1, Setpgid: true}
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that started the child for the parent's death,
		// so this thread must last as long as the child: it is this goroutine's alone, until Wait.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := l.cmd.Start()
		started <- err
		if err == nil {
			l.readEvents(stdout)
		}
	}()
	if err := <-started; err != nil {
		return nil, exit.New(exit.Failed, "install it next to temper or in PATH", "cannot start scx_temper: %w", err)
	}
	return l, nil
}

// Events tells what scx_temper tells, until it ends; then the channel is closed.
func (l *Loader) Events() <-chan Event { return l.events }

// Outcome is how scx_temper ended; call it after Events was closed.
func (l *Loader) Outcome() Outcome { return l.outcome }

// PID is scx_temper's process id.
func (l *Loader) PID() int { return l.cmd.Process.Pid }

// Signal sends a signal. A process that is gone already is no error.
func (l *Loader) Signal(signal os.Signal) error {
	if err := l.cmd.Process.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (l *Loader) readEvents(stdout io.Reader) {
	var last Event
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var event Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			event = Event{Event: EventError, Status: exit.Failed, Message: fmt.Sprintf("scx_temper said %q, which is no event", lines.Text())}
		}
		// The kernel's words have a thread's name among them.
		event.Reason, event.Message = host.Printable(event.Reason), host.Printable(event.Message)
		if event.Event != EventAttached {
			last = event
		}
		l.events <- event
	}
	err := l.cmd.Wait()
	l.outcome = outcomeOf(l.cmd.ProcessState, last, err)
	close(l.events)
}

func outcomeOf(state *os.ProcessState, last Event, err error) Outcome {
	if state == nil {
		return Outcome{exit.Failed, "scx_temper: " + err.Error()}
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return Outcome{128 + int(status.Signal()), fmt.Sprintf("scx_temper was killed by signal %d (%v)", status.Signal(), status.Signal())}
	}
	text := fmt.Sprintf("scx_temper left with status %d", status.ExitStatus())
	switch {
	case last.Event == EventExited:
		text += ": the kernel says: " + last.Reason
		if last.Message != "" {
			text += " (" + last.Message + ")"
		}
	case last.Message != "":
		text += ": " + last.Message
	}
	return Outcome{status.ExitStatus(), text}
}

// Detach detaches a scheduler whose scx_temper is gone, and removes its pins in dir; none there is no error.
// scx_temper itself, the program at path, does it: it keeps the kernel from starving meanwhile (sched/guard.c).
func Detach(path, dir string) error {
	if out, err := exec.Command(path, "--detach", "--pin", dir).CombinedOutput(); err != nil {
		return exit.New(exit.Failed, "remove "+dir, "cannot detach the scheduler: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// LoaderName is the program that attaches the scheduler.
const LoaderName = "scx_temper"

// FindLoader is scx_temper's path: next to this program, else in PATH.
func FindLoader() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), LoaderName)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(LoaderName)
	if err != nil {
		return "", exit.New(exit.Failed, "install it next to temper or in PATH", "no scx_temper: %w", err)
	}
	return path, nil
}
