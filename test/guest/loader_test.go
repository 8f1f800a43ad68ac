//go:build guest

package guest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/enforce"
)

// loader is a running scx_temper, without an agent around it.
type loader struct {
	cmd    *exec.Cmd
	events chan enforce.Event // closed once the process has closed its output
	stderr string             // file
}

// startLoader starts scx_temper --json. What it leaves behind is removed at the test's end.
func startLoader(t *testing.T, args ...string) *loader {
	t.Helper()
	return startLoaderInside(t, nil, args...)
}

// startLoaderInside starts it where inside puts the command.
func startLoaderInside(t *testing.T, inside func(*exec.Cmd), args ...string) *loader {
	t.Helper()
	l := &loader{cmd: exec.Command("scx_temper", append([]string{"--json"}, args...)...), events: make(chan enforce.Event, 16)}
	l.stderr = filepath.Join(t.TempDir(), "stderr")
	stderr, err := os.Create(l.stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	l.cmd.Stderr = stderr
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if inside != nil {
		inside(l.cmd)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.events)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var e enforce.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				e = enforce.Event{Event: "no JSON", Message: lines.Text()}
			}
			l.events <- e
		}
	}()
	t.Cleanup(func() {
		if l.cmd.ProcessState == nil {
			l.leave(t, syscall.SIGTERM)
		}
		if err := enforce.Detach("scx_temper", root.Pins()); err != nil {
			t.Error(err)
		}
		eventually(t, "the stock scheduler", func() bool { return kernel(t).State == "disabled" })
		if t.Failed() {
			t.Logf("scx_temper said:\n%s", read(t, l.stderr))
		}
	})
	return l
}

// next waits for an event of scx_temper.
func (l *loader) next(t *testing.T) enforce.Event {
	t.Helper()
	select {
	case e, ok := <-l.events:
		if !ok {
			t.Fatalf("scx_temper has ended: %s", read(t, l.stderr))
		}
		return e
	case <-time.After(patience):
		t.Fatalf("no event within %v", patience)
	}
	panic("unreachable")
}

// attach starts scx_temper and waits until it says that the scheduler is attached.
func attach(t *testing.T, args ...string) *loader {
	t.Helper()
	l := startLoader(t, args...)
	if e := l.next(t); e.Event != enforce.EventAttached {
		t.Fatalf("%+v", e)
	}
	if s := kernel(t); !s.IsTemper() {
		t.Fatalf("scx_temper says that it is attached, the kernel says %+v", s)
	}
	return l
}

// leave sends a signal and returns the exit status; 128 + signal if a signal ended it.
func (l *loader) leave(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	if err := l.cmd.Process.Signal(signal); err != nil {
		t.Error(err)
	}
	return l.wait()
}

func (l *loader) wait() int {
	for range l.events {
	}
	// An error here is an exit status that is not 0, which ProcessState has too.
	_ = l.cmd.Wait()
	if status := l.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return l.cmd.ProcessState.ExitCode()
}

// refused runs scx_temper and checks that it leaves with a status, one line that says why, and the
// node as it was.
func refused(t *testing.T, status int, why string, cmd *exec.Cmd) {
	t.Helper()
	before := kernel(t)
	got, _, stderr := finish(t, cmd)
	if got != status {
		t.Errorf("left with %d, not %d", got, status)
	}
	text := []byte(stderr)
	if !bytes.HasPrefix(text, []byte("scx_temper: ")) || bytes.Count(text, []byte("\n")) != 1 || !bytes.Contains(text, []byte(why)) {
		t.Errorf("said %q, not one line about %q", stderr, why)
	}
	if after := kernel(t); after != before {
		t.Errorf("the kernel said %+v before, %+v after", before, after)
	}
	if before.State == "disabled" && host.Exists(root.Pins()) {
		t.Error("it has left its pins behind")
	}
}
