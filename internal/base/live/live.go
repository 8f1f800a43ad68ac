// Package live shows what changes, over and over: a table that is drawn anew on a terminal, tables that follow each other
// elsewhere and on a dumb one, or a line of JSON each time.
package live

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"golang.org/x/term"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
)

// shortest is the shortest time between two looks: what is asked has other things to do.
const shortest = 100 * time.Millisecond

// CheckEvery says what is wrong with a time between looks.
func CheckEvery(every time.Duration) error {
	if every < shortest {
		return exit.New(exit.Usage, "use "+shortest.String()+" or more", "--every %v is too short", every)
	}
	return nil
}

// View is how looks at something are shown.
type View[T any] struct {
	Look    func(context.Context) T
	Compare func(before, now T) // fills in what has changed between two
	Write   func(io.Writer, T)  // as text for people
	JSON    bool
}

// Once looks once, and returns what was seen. It leaves the screen as it is.
func (v View[T]) Once(ctx context.Context, out io.Writer) (T, error) {
	seen := v.Look(ctx)
	return seen, v.print(out, seen, false)
}

// Run looks until it is interrupted, which is how it ends.
func (v View[T]) Run(ctx context.Context, out io.Writer, every time.Duration) error {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	drawn := !v.JSON && cli.Draws(out)
	seen := v.Look(ctx)
	for first := true; ctx.Err() == nil; first = false {
		if !first && !v.JSON && !drawn {
			if _, err := io.WriteString(out, "\n"); err != nil {
				return err
			}
		}
		if err := v.print(out, seen, drawn); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		now := v.Look(ctx)
		v.Compare(seen, now)
		seen = now
	}
	return nil
}

// print writes what was seen at one go, so that a terminal does not flicker: drawn over what was there, or as it is.
func (v View[T]) print(out io.Writer, seen T, drawn bool) error {
	var text bytes.Buffer
	if v.JSON {
		if err := json.NewEncoder(&text).Encode(seen); err != nil {
			return err
		}
	} else {
		v.Write(&text, seen)
	}
	written := text.Bytes()
	if drawn {
		written = frame(written, height(out))
	}
	_, err := out.Write(written)
	return err
}

// height is how many lines a terminal has; 0: it does not say.
func height(out io.Writer) int {
	_, lines, err := term.GetSize(int(out.(interface{ Fd() uintptr }).Fd()))
	if err != nil {
		return 0
	}
	return lines
}

const (
	home      = "\x1b[H"
	clearLine = "\x1b[K"   // to its end
	clearRest = "\x1b[J"   // of the screen
	noWrap    = "\x1b[?7l" // the terminal cuts lines that are too long
	wrap      = "\x1b[?7h"
)

// frame draws text over what was drawn before, as much of it as fits; the last line stays empty, for the cursor.
func frame(text []byte, lines int) []byte {
	var drawn bytes.Buffer
	drawn.WriteString(noWrap + home)
	shown := 0
	for line := range bytes.Lines(text) {
		if lines > 0 && shown == lines-1 {
			break
		}
		drawn.Write(bytes.TrimSuffix(line, []byte("\n")))
		drawn.WriteString(clearLine + "\n")
		shown++
	}
	drawn.WriteString(clearRest + wrap)
	return drawn.Bytes()
}
