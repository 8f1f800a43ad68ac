package machine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/plan"
)

// fake is a guest whose emulator is a shell script, run in the guest's folder.
func fake(script string) Guest {
	return Guest{Emulator: "/bin/sh", Args: []string{"-c", script}, Initrd: []byte("initrd"), Deadline: time.Minute}
}

func checkNothingLeft(t *testing.T, c cache.Folder) {
	t.Helper()
	if left, _ := filepath.Glob(c.Path("runs", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBootEndsWithTheGuestDone(t *testing.T) {
	c := cache.Folder(t.TempDir())
	var text string
	// It would go on for ever: a guest that is done is not waited for.
	err := Boot(t.Context(), c, fake(`printf '{"kind":"log","text":"%s"}\n{"kind":"done"}\n' "$(cat initrd)" >data.jsonl; exec sleep infinity`),
		func(e plan.Event) error { text += e.Text; return nil })
	if err != nil || text != "initrd" {
		t.Errorf("got %q, %v", text, err)
	}
	checkNothingLeft(t, c)
}

func TestBootQuotesTheConsoleOfADeadGuest(t *testing.T) {
	c := cache.Folder(t.TempDir())
	err := Boot(t.Context(), c, fake(`printf 'booting\r\nKernel panic: no init\r\n' >console.log`), func(plan.Event) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "before it was done") || !strings.HasSuffix(err.Error(), "\n  booting\n  Kernel panic: no init") {
		t.Errorf("got %v", err)
	}
	err = Boot(t.Context(), c, fake(`echo 'unknown option' >&2; exit 1`), func(plan.Event) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "unknown option; its console is empty") {
		t.Errorf("got %v", err)
	}
	checkNothingLeft(t, c)
}

func TestBootLeavesNoStrayGuestWhenInterrupted(t *testing.T) {
	c := cache.Folder(t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	pidFile := filepath.Join(t.TempDir(), "pid")
	script := `sleep infinity >/dev/null 2>&1 & echo $! >` + pidFile + `; echo '{"kind":"log"}' >data.jsonl; wait`
	err := Boot(ctx, c, fake(script), func(plan.Event) error { interrupt(); return nil })
	if exit.StatusOf(err) != exit.Interrupted {
		t.Errorf("got %v", err)
	}
	fixture.AwaitEnd(t, pidFile)
	checkNothingLeft(t, c)
}

func TestBootStopsAStuckGuest(t *testing.T) {
	c := cache.Folder(t.TempDir())
	g := fake(`exec sleep infinity`)
	g.Deadline = time.Millisecond
	err := Boot(t.Context(), c, g, func(plan.Event) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "did not end within") {
		t.Errorf("got %v", err)
	}
	checkNothingLeft(t, c)
}

// A guest that is stuck is asked where, once, and has what it says kept.
func TestBootAsksAStuckGuestWhereItIs(t *testing.T) {
	c, dir := cache.Folder(t.TempDir()), t.TempDir()
	socket, answer, kept := filepath.Join(dir, "socket"), filepath.Join(dir, "answer"), filepath.Join(dir, "kept")
	if err := syscall.Mkfifo(answer, 0o600); err != nil {
		t.Fatal(err)
	}
	monitor, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer monitor.Close()
	asked := make(chan string, 1)
	g := fake(`ln -s ` + socket + ` monitor; echo '{"kind":"log"}' >data.jsonl; cat ` + answer + ` >console.log`)
	g.Console, g.CPUs = kept, 1
	ctx, stick := context.WithCancelCause(t.Context())
	go func() {
		conn, err := monitor.Accept()
		if err != nil {
			return // the test is over
		}
		var text []byte
		for question := make([]byte, 64); !bytes.HasSuffix(text, []byte("nmi\n")); {
			n, err := conn.Read(question)
			if err != nil {
				break
			}
			text = append(text, question[:n]...)
		}
		io.WriteString(conn, "RIP=1\n")
		conn.Close()
		asked <- string(text)
		os.WriteFile(answer, []byte("task:sleep\n"), 0)
	}()
	err = Boot(ctx, c, g, func(plan.Event) error { stick(errStuck); return nil })
	if err == nil {
		t.Error("no error")
	}
	if got, want := <-asked, "cpu 0\ninfo registers\nx /192gx $rsp\nnmi\n"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "task:sleep\nRIP=1\n" {
		t.Errorf("kept %q, %v", text, err)
	}
	checkNothingLeft(t, c)
}

// A guest that its emulator has lost is told from one that broke by itself.
func TestBootKnowsStaleCode(t *testing.T) {
	for console, stale := range map[string]bool{
		"[   21.3] Oops: int3: 0000 [#1] SMP NOPTI": true, "[   21.3] Oops: general protection fault": false,
	} {
		c := cache.Folder(t.TempDir())
		err := Boot(t.Context(), c, fake(`echo '`+console+`' >console.log`), func(plan.Event) error { return nil })
		if err == nil || errors.Is(err, ErrStaleCode) != stale {
			t.Errorf("%s: %v", console, err)
		}
	}
}
