package bench

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// missing stands for a figure that does not exist.
const missing = "–"

// grid is a table of text: the first column is set to the left, the others to the right.
type grid struct {
	rows [][]string
	// style, where given, wraps a padded cell in terminal colours.
	style func(row, column int, padded string) string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// lines are the aligned rows, without trailing blanks.
func (g *grid) lines() []string {
	var widths []int
	for _, row := range g.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var lines []string
	for r, row := range g.rows {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			padded := padding + cell
			if i == 0 {
				padded = cell + padding
			}
			if g.style != nil {
				padded = g.style(r, i, padded)
			}
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(padded)
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

// FormatMS writes a latency in ms with three significant digits.
func FormatMS(ms float64) string {
	switch {
	case math.IsNaN(ms):
		return missing
	case ms < 0.9995:
		return fmt.Sprintf("%.3f", ms)
	case ms < 9.995:
		return fmt.Sprintf("%.2f", ms)
	case ms < 99.95:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

// FormatRatio writes a ratio with two decimals, and its interval where there is one.
func FormatRatio(r *Ratio) string {
	switch {
	case r == nil:
		return missing
	case r.High == 0:
		return fmt.Sprintf("%.2f", r.Value)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", r.Value, r.Low, r.High)
}

func formatValue(r *Ratio) string {
	if r == nil {
		return missing
	}
	return fmt.Sprintf("%.2f", r.Value)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

// trimFloat writes a number without needless zeros.
func trimFloat(v float64) string { return fmt.Sprintf("%.4g", v) }

// list joins words as a sentence does.
func list(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
