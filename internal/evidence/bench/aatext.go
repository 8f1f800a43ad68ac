package bench

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes the study for a person.
func (study *AA) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range study.Groups {
		g := &study.Groups[i]
		fmt.Fprintf(&b, "A/A study, %s: kernel %s, %d seeds, windows of %s s\n", g.Plan, g.Conditions.Kernel, g.Seeds, trimFloat(g.Conditions.Seconds))
		t := grid{}
		t.add("arm", "bg", "figure", "windows", "min", "median", "max", "unpaired", "paired")
		for _, c := range g.Cells {
			for _, f := range c.Figures {
				t.add(c.Arm, StepLabel(c.Background, c.Visit), f.Figure.Short(), fmt.Sprint(f.Windows),
					f.Format(f.Min), f.Format(f.Median), f.Format(f.Max), f.Unpaired.Text(), f.Paired.Text())
			}
		}
		n := grid{}
		n.add("bar", "limit", "at bg", "chance", "needs at each arm and step")
		for _, l := range g.Worst() {
			n.add(l.Bar, twoDecimals(l.Limit), StepLabel(l.Background, l.Visit), twoDecimals(l.SpreadHigh), l.Need())
		}
		for _, line := range append(t.lines(), n.lines()...) {
			fmt.Fprintln(&b, line)
		}
	}
	fmt.Fprintln(&b, "Method: "+study.Method)
	_, err := io.WriteString(w, b.String())
	return err
}

// Format writes a figure's value: ms, iterations or cores.
func (f AAFigure) Format(v float64) string {
	switch f.Figure {
	case Work:
		return fmt.Sprintf("%.0f", v)
	case BackgroundCores, IdleCores:
		return twoDecimals(v)
	}
	return FormatMS(v)
}

// Text is the spread in words, or a dash where there is none.
func (s *Spread) Text() string {
	if s == nil {
		return missing
	}
	return fmt.Sprintf("%.2f–%.2f", s.Low, s.High)
}
