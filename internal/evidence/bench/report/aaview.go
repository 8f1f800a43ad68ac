package report

import (
	"fmt"

	"temper.dev/temper/internal/evidence/bench"
)

// aaView is the A/A study of one plan in words.
type aaView struct {
	Name    string
	Rows    [][]string
	Lengths [][]string
}

func newAAView(g *bench.AAGroup) aaView {
	v := aaView{Name: fmt.Sprintf("%s, kernel %s, %d seeds, windows of %g s", g.Plan, g.Conditions.Kernel, g.Seeds, g.Conditions.Seconds)}
	for _, c := range g.Cells {
		for _, f := range c.Figures {
			v.Rows = append(v.Rows, []string{
				c.Arm, bench.StepLabel(c.Background, c.Visit), f.Figure.Short(), fmt.Sprint(f.Windows),
				f.Format(f.Min), f.Format(f.Median), f.Format(f.Max), f.Unpaired.Text(), f.Paired.Text(),
			})
		}
	}
	for _, l := range g.Worst() {
		v.Lengths = append(v.Lengths, []string{
			l.Bar, fmt.Sprintf("%.2f", l.Limit), bench.StepLabel(l.Background, l.Visit), fmt.Sprintf("%.2f", l.SpreadHigh), l.Need(),
		})
	}
	return v
}
