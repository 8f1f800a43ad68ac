package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/plan"
)

// Guest is one run of the machine.
type Guest struct {
	Emulator string
	Args     []string
	Initrd   []byte
	Deadline time.Duration // real time after which the guest is taken to be stuck
	Renewed  bool          // by each event: the guest is stuck where it says nothing for so long
	CPUs     int           // virtual ones
	Console  string        // file to keep what its kernel said in; "": nowhere
}

// answerWithin bounds how long a stuck guest may take to say where it is.
const answerWithin = 30 * time.Second

var errStuck = errors.New("the guest was stopped")

// ErrStaleCode is taken for a fault of the emulator with several host threads: a CPU runs, once more, code
// that the kernel has replaced meanwhile (docs/decisions/0011). Attaching and detaching a scheduler changes code.
var ErrStaleCode = errors.New("the emulator ran an instruction that its kernel had replaced")

// Boot runs a guest in a folder of its own until it says that it is done, and hands each of its
// events to handle. When it returns, no process and no file of the guest is left, whatever happened.
func Boot(ctx context.Context, c cache.Folder, g Guest, handle func(plan.Event) error) (err error) {
	dir, leave, err := c.RunFolder()
	if err != nil {
		return err
	}
	defer leave()
	// The data file is made here, so that there is something to follow before the emulator starts.
	for name, data := range map[string][]byte{"initrd": g.Initrd, dataFile: nil} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return c.Explain(err)
		}
	}
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stuck := time.AfterFunc(g.Deadline, func() {
		what := "it did not end within"
		if g.Renewed {
			what = "it is stuck, or this host is too busy with other work: it has said nothing for"
		}
		cancel(fmt.Errorf("%w: %s %s", errStuck, what, g.Deadline.Round(time.Second)))
	})
	defer stuck.Stop()
	events := handle
	if g.Renewed {
		events = func(e plan.Event) error {
			stuck.Reset(g.Deadline)
			return handle(e)
		}
	}
	defer func() {
		if keepErr := keepConsole(dir, g.Console); err == nil {
			err = keepErr
		}
	}()
	var emulatorErr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		emulatorErr = runEmulator(bounded, g, dir)
	}()
	done, err := follow(filepath.Join(dir, dataFile), ended, events)
	cancel(nil) // a guest that is done need not take its time to power off
	<-ended
	switch {
	case ctx.Err() != nil:
		return exit.New(exit.Interrupted, "", "interrupted; the guest is gone, and nothing is kept of what it measured")
	case err == nil && done:
		return nil
	case err == nil:
		err = emulatorErr
	}
	console := filepath.Join(dir, consoleFile)
	if ranStaleCode(console) {
		err = fmt.Errorf("%w: %w", ErrStaleCode, err)
	}
	return fmt.Errorf("%w%s", err, LastLines("its console", console, 15))
}

// ranStaleCode tells whether a breakpoint of the kernel's own ended the guest. The kernel puts one where
// it is about to change an instruction, and takes it away when it is sure that no CPU can meet it any more.
func ranStaleCode(console string) bool {
	text, err := os.ReadFile(console)
	return err == nil && bytes.Contains(text, []byte("Oops: int3"))
}

// runEmulator returns why the emulator ended. It never returns nil: a guest that is done is
// stopped by its context.
func runEmulator(ctx context.Context, g Guest, dir string) error {
	// The kernel sends Pdeathsig when the thread that started the child ends, so that must not
	// happen before the child does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, g.Emulator, g.Args...)
	cmd.Dir = dir
	cmd.Stderr = &stderr
	// A process group of its own: Ctrl-C reaches this process, which then ends the guest.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error {
		if errors.Is(context.Cause(ctx), errStuck) && askWhereItIs(dir, g.CPUs) == nil {
			return nil // it ends by itself, or after WaitDelay
		}
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	cmd.WaitDelay = answerWithin
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the emulator failed: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return fmt.Errorf("the guest ended before it was done")
}

// askWhereItIs has a fast guest's emulator say where its CPUs are, with the top of their stacks, and then
// its kernel panic, which names them; it may be past that: a panic, too, can wait for a lock. The
// deterministic guest has no monitor, and cannot be asked.
func askWhereItIs(dir string, cpus int) error {
	here, err := os.Open(dir) // the path of a socket is short
	if err != nil {
		return err
	}
	defer here.Close()
	monitor, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", here.Fd(), monitorFile))
	if err != nil {
		return err
	}
	defer monitor.Close()
	var questions strings.Builder
	for cpu := range cpus {
		fmt.Fprintf(&questions, "cpu %d\ninfo registers\nx /192gx $rsp\n", cpu)
	}
	questions.WriteString("nmi\n")
	if _, err := io.WriteString(monitor, questions.String()); err != nil {
		return err
	}
	answers, err := os.Create(filepath.Join(dir, answersFile))
	if err != nil {
		return err
	}
	defer answers.Close()
	_ = monitor.SetReadDeadline(time.Now().Add(answerWithin / 10)) // the monitor does not say when it is done
	if _, err := io.Copy(answers, monitor); !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// keepConsole copies what the kernel said, and the emulator's answers if it was asked, to where somebody wants them.
func keepConsole(dir, to string) error {
	if to == "" {
		return nil
	}
	var all []byte
	for _, name := range []string{consoleFile, answersFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) { // an emulator that did not start has left none
			return err
		}
		all = append(all, text...)
	}
	return os.WriteFile(to, all, 0o644)
}

// LastLines quotes the end of what a guest or its programs said, for whoever has to find out why they died.
func LastLines(what, path string, n int) string {
	text, err := os.ReadFile(path)
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), "\r", "")), "\n")
	if err != nil || lines[0] == "" {
		return "; " + what + " is empty"
	}
	return "; " + what + " ends with:\n  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}
