package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
)

// count is a view of a number that grows with each look, shown by as many lines. It ends with the look after the last.
func count(last int, end func()) View[*int] {
	looks := 0
	return View[*int]{
		Look: func(context.Context) *int {
			looks++
			if looks > last {
				end()
			}
			seen := looks
			return &seen
		},
		Compare: func(before, now *int) { *now += 10 * *before },
		Write: func(w io.Writer, seen *int) {
			for i := range *seen {
				fmt.Fprintf(w, "line %d of %d\n", i+1, *seen)
			}
		},
	}
}

func TestTablesFollowEachOther(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	var out bytes.Buffer
	if err := count(2, end).Run(ctx, &out, shortest); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "line 1 of 1\n\nline 1 of 12\nline 2 of 12\n") || strings.Count(got, "\n") != 14 {
		t.Errorf("%q", got)
	}
}

func TestJSONIsALineEachLook(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	var out bytes.Buffer
	v := count(3, end)
	v.JSON = true
	if err := v.Run(ctx, &out, shortest); err != nil || out.String() != "1\n12\n123\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestOnce(t *testing.T) {
	var out bytes.Buffer
	if seen, err := count(1, nil).Once(t.Context(), &out); err != nil || *seen != 1 || out.String() != "line 1 of 1\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}

// A terminal has the newest table where the one before was, and no more of it than fits.
func TestTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, terminal := fixture.Terminal(t)
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 5, Col: 80}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- count(2, end).Run(ctx, terminal, shortest) }()
	want := noWrap + home + "line 1 of 1" + clearLine + "\r\n" + clearRest + wrap + noWrap + home
	for i := 1; i < 5; i++ {
		want += fmt.Sprintf("line %d of 12", i) + clearLine + "\r\n"
	}
	want += clearRest + wrap
	got := make([]byte, len(want))
	if _, err := io.ReadFull(master, got); err != nil || string(got) != want {
		t.Errorf("%v:\n%q\nwant\n%q", err, got, want)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// One look leaves the screen as it is, and a terminal that knows no escape sequences has none.
func TestPlainOnATerminal(t *testing.T) {
	const two = "line 1 of 1\n\n" + "line 1 of 12\nline 2 of 12\n"
	for _, c := range []struct {
		what, term string
		show       func(t *testing.T, terminal io.Writer) error
		want       string
	}{
		{"one look", "xterm", func(t *testing.T, terminal io.Writer) error {
			_, err := count(1, nil).Once(t.Context(), terminal)
			return err
		}, "line 1 of 1\n"},
		{"looks on a dumb one", "dumb", func(t *testing.T, terminal io.Writer) error {
			ctx, end := context.WithCancel(t.Context())
			return count(2, end).Run(ctx, terminal, shortest)
		}, two},
		{"a line of progress on a dumb one", "dumb", func(t *testing.T, terminal io.Writer) error {
			line := NewLine(terminal)
			line.Show("one")
			line.End()
			return nil
		}, "  0:00  one\n"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Setenv("TERM", c.term)
			master, terminal := fixture.Terminal(t)
			ended := make(chan error)
			go func() { ended <- c.show(t, terminal) }()
			got := make([]byte, len(strings.ReplaceAll(c.want, "\n", "\r\n")))
			_, err := io.ReadFull(master, got)
			if text := strings.ReplaceAll(string(got), "\r\n", "\n"); err != nil || text != c.want {
				t.Errorf("%v: %q, want %q", err, text, c.want)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckEvery(t *testing.T) {
	if err := CheckEvery(shortest - time.Millisecond); exit.StatusOf(err) != exit.Usage {
		t.Error(err)
	}
	if err := CheckEvery(shortest); err != nil {
		t.Error(err)
	}
}
