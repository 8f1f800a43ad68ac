package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
)

// terminal is a terminal, and what is typed into it.
func terminal(t *testing.T, typed string) *os.File {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	fd := int(keyboard.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	if _, err := keyboard.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	return screen
}

func TestConfirm(t *testing.T) {
	const interrupted = "\x04" // the end of what is typed
	for typed, want := range map[string]string{"y\n": "", "Yes\n": "", "\n": "nothing was changed", "n\n": "nothing was changed", "yesterday\n": "nothing was changed", interrupted: "nothing was changed"} {
		var asked strings.Builder
		cmd := &cobra.Command{}
		cmd.SetIn(terminal(t, typed))
		cmd.SetErr(&asked)
		err := confirm(cmd, "Really?")
		if got := fmt.Sprint(err); (err == nil) != (want == "") || err != nil && got != want || asked.String() != "Really? [y/N] " {
			t.Errorf("%q: got %v, want %q; asked %q", typed, err, want, asked.String())
		}
	}
	cmd := &cobra.Command{}
	cmd.SetIn(strings.NewReader("y\n"))
	if err := confirm(cmd, "Really?"); exit.StatusOf(err) != exit.Usage {
		t.Errorf("without a terminal: %v", err)
	}
}
