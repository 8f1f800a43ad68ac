package live

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/term"

	"temper.dev/temper/internal/base/cli"
)

// Line shows how far something has come: on a terminal that is not dumb one line that changes, elsewhere plain lines, so that a log stays
// readable.
type Line struct {
	Terminal bool
	w        io.Writer
	shown    bool
	start    time.Time
}

// NewLine begins a line now.
func NewLine(w io.Writer) Line {
	return Line{w: w, Terminal: cli.Draws(w), start: time.Now()}
}

// Start is when the line has begun.
func (l *Line) Start() time.Time { return l.start }

// Show shows the text in place of the one before.
func (l *Line) Show(text string) {
	if !l.Terminal {
		fmt.Fprintf(l.w, "%6s  %s\n", Clock(time.Since(l.start)), text)
		return
	}
	if width, _, err := term.GetSize(int(l.w.(interface{ Fd() uintptr }).Fd())); err == nil && len(text) >= width && width > 0 {
		text = text[:width-1]
	}
	fmt.Fprint(l.w, "\r\x1b[K"+text)
	l.shown = true
}

// End leaves the terminal's line to what comes next.
func (l *Line) End() {
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
	}
	l.shown = false
}

// Clock writes a duration as minutes and seconds.
func Clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
