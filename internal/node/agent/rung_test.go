package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"temper.dev/temper/internal/node/enforce"
)

// A healthy start has no warning; a fall has one.
func TestRungsAreLogged(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, rung enforce.Rung
		want         string
	}{
		{"the first", "", enforce.Observe, `level=INFO msg="rung observe" why=because` + "\n"},
		{"attached", enforce.Observe, enforce.SCX, `level=INFO msg="rung scx" why=because` + "\n"},
		{"a fall", enforce.SCX, enforce.Observe, `level=WARN msg="rung observe" why=because` + "\n"},
		{"half a fall", enforce.SCX, enforce.CPUIdle, `level=WARN msg="rung cpu.idle" why=because` + "\n"},
		{"the same", enforce.SCX, enforce.SCX, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said bytes.Buffer
			a := &Agent{log: slog.New(slog.NewTextHandler(&said, nil)), state: State{Rung: c.before}}
			a.setRung(c.rung, "because")
			_, got, _ := strings.Cut(said.String(), " ")
			if got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
