package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// BarSummary is one bar in one plan: the step that decides it.
type BarSummary struct {
	Worst  BarResult
	Failed int // steps that fail
	Steps  int // steps checked
}

// Summarise picks, for each plan, arm and bar, the failed step that is farthest from its limit, or the one that comes
// closest to it.
func Summarise(results []BarResult) []BarSummary {
	return summarise(results, func(r BarResult) string { return r.Plan + "\x00" + r.Arm + "\x00" + r.Bar })
}

// SummariseBars does the same for each bar, over all plans and arms.
func SummariseBars(results []BarResult) []BarSummary {
	return summarise(results, func(r BarResult) string { return r.Bar })
}

// summarise makes one summary of all results with the same key, in the order in which the keys appear.
func summarise(results []BarResult, key func(BarResult) string) []BarSummary {
	var out []BarSummary
	index := map[string]int{}
	for _, r := range results {
		i, ok := index[key(r)]
		if !ok {
			i = len(out)
			index[key(r)] = i
			out = append(out, BarSummary{Worst: r})
		}
		s := &out[i]
		s.Steps++
		if !r.Pass {
			s.Failed++
		}
		if r.strain() > s.Worst.strain() {
			s.Worst = r
		}
	}
	return out
}

// strain is how far a result is from its limit, as a logarithm: above 0 it fails, and what was not measured fails most.
func (r BarResult) strain() float64 {
	if r.Measured == nil {
		return math.Inf(1)
	}
	s := math.Log(r.Measured.Value / r.Applied)
	if r.AtLeast {
		return -s
	}
	return s
}

// WriteBars writes the bars for a person: one row for each plan, arm and bar, with the step that decides it.
func WriteBars(w io.Writer, results []BarResult) error {
	var b strings.Builder
	title := ""
	var g *grid
	var notes []string
	flush := func() {
		if g == nil {
			return
		}
		for _, line := range append(g.lines(), notes...) {
			fmt.Fprintln(&b, line)
		}
	}
	for _, s := range Summarise(results) {
		if t := fmt.Sprintf("Bars for %s, %s", s.Worst.Arm, s.Worst.Plan); t != title {
			flush()
			title, g, notes = t, &grid{}, nil
			fmt.Fprintln(&b, title)
			g.add("bar", "limit", "measured", "at bg", "best stock", "over best overall", "A/A spread", "")
		}
		g.add(barRow(s)...)
		if note := s.Note(); note != "" {
			notes = append(notes, fmt.Sprintf("  %s: %s. %s", s.Worst.Bar, s.Worst.Text, note))
		}
	}
	flush()
	_, err := io.WriteString(w, b.String())
	return err
}

func barRow(s BarSummary) []string {
	r := s.Worst
	spread, stock, overall := missing, missing, missing
	if r.SpreadHigh > 0 {
		spread = fmt.Sprintf("%.2f–%.2f", r.SpreadLow, r.SpreadHigh)
	}
	if r.BestStock != "" {
		stock = fmt.Sprintf("%.2f %s", r.BestStockRatio, r.BestStock)
	}
	if r.BestOverall != "" {
		overall = fmt.Sprintf("%.2f %s", r.OverBestOverall, r.BestOverall)
	}
	return []string{r.Bar, r.LimitText(), FormatRatio(r.Measured), StepLabel(r.Background, r.Visit), stock, overall, spread, s.Verdict()}
}

// LimitText is the limit that was asked, with its sign.
func (r BarResult) LimitText() string {
	sign := "≤"
	if r.AtLeast {
		sign = "≥"
	}
	text := fmt.Sprintf("%s %.2f", sign, r.Applied)
	if r.InsideSpread {
		text += fmt.Sprintf(" (A/A; bar %.2f)", r.Limit)
	}
	return text
}

// Where is the result in words: "at 8 spinners 1.072, allowed 1.000".
func (r BarResult) Where() string {
	return fmt.Sprintf("at %s %s", Spinners(r.Background, r.Visit), r.Reason)
}

// Verdict is pass, or how many steps fail.
func (s BarSummary) Verdict() string {
	if s.Failed == 0 {
		return "pass"
	}
	return fmt.Sprintf("FAIL at %d of %s", s.Failed, plural(s.Steps, "step", "steps"))
}

// Note says how the bar was decided, where a figure and a limit do not say it all; else it is empty.
func (s BarSummary) Note() string {
	if s.Failed == 0 && !s.Worst.InsideSpread {
		return ""
	}
	return capital(s.Worst.Where()) + "."
}
