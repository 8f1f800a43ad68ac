package doctor

import (
	"fmt"
	"io"
	"strings"

	"temper.dev/temper/internal/node/status"
)

// Write shows the checks to a person: one line each, and the cure below.
func Write(w io.Writer, checks []Check, style status.Style) {
	for _, c := range checks {
		fmt.Fprintf(w, "%s %-11s %s\n", level(c.Level, style), c.Name, c.Found)
		if c.Cure != "" {
			fmt.Fprintf(w, "%s cure: %s\n", strings.Repeat(" ", 16), c.Cure)
		}
	}
}

func level(l Level, style status.Style) string {
	text := fmt.Sprintf("%-4s", l)
	switch l {
	case OK:
		return style.Good(text)
	case Warn:
		return style.Warn(text)
	}
	return style.Bad(text)
}
