package docgen

import (
	"fmt"
	"math"
	"strings"

	"temper.dev/temper/internal/evidence/bench"
)

const noRecords = "No records are committed yet; `make records` measures them.\n"

// compared are the arms that the tables for readers show: stock as the kernel boots, its best setting, Temper.
var compared = [...]string{"eevdf", "cpuidle", "temper"}

// Stock is the block of the page on stock settings: the shown plan, picture and table; then all plans, a line each.
func Stock(s *bench.Summary, picture, page string) string {
	if s == nil {
		return noRecords
	}
	var b strings.Builder
	p := Shown(s)
	fmt.Fprintf(&b, "![%s: p99 latency and background work against the number of spinners](%s)\n\n", p.Plan(), picture)
	fmt.Fprintf(&b, "%s, kernel %s, %s. p50 / p99 in %s; in brackets, background work over the arm that did most.\n\n",
		strings.ToUpper(p.Plan()[:1])+p.Plan()[1:], p.Conditions.Kernel, p.SeedText(), p.TimeUnit())
	b.WriteString("| spinners |")
	for _, a := range p.Arms {
		fmt.Fprintf(&b, " %s (%s) |", a.Label, a.Preempt)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(p.Arms)) + "\n")
	for i := range p.Arms[0].Cells {
		fmt.Fprintf(&b, "| %s |", p.Arms[0].Cells[i].Label())
		for j := range p.Arms {
			fmt.Fprintf(&b, " %s |", cell(p, &p.Arms[j].Cells[i]))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\nAll plans: the worst p99 over the floor / the least background work over the most, at any loaded step. [Every step, arm and bar](%s).\n\n", page)
	fmt.Fprintf(&b, "| plan | %s | stock is good enough |\n| --- |%s --- |\n", strings.Join(compared[:], " | "), strings.Repeat(" --- |", len(compared)))
	for _, p := range s.Pools {
		fmt.Fprintf(&b, "| %s |", p.Plan())
		for _, arm := range compared {
			fmt.Fprintf(&b, " %s |", p.StandingText(arm))
		}
		fmt.Fprintf(&b, " %s |\n", p.GoodEnoughText())
	}
	fmt.Fprintf(&b, "\nTemper misses %d of its %d checks of the bars:\n\n| bar | missed | worst at | measured | allowed |\n| --- | --- | --- | --- | --- |\n",
		len(bench.Failed(s.Bars)), len(s.Bars))
	for _, bar := range bench.SummariseBars(s.Bars) {
		measured := "–"
		if m := bar.Worst.Measured; m != nil {
			measured = fmt.Sprintf("%.3f", m.Value)
		}
		fmt.Fprintf(&b, "| %s | %d of %d | %s, step %d | %s | %.3f |\n", bar.Worst.Name, bar.Failed, bar.Steps, bar.Worst.Plan, bar.Worst.Background,
			measured, bar.Worst.Applied)
	}
	return b.String()
}

func cell(p *bench.Pooled, c *bench.Cell) string {
	if c.Figures == nil {
		return "invalid"
	}
	text := bench.FormatMS(c.Figures.P50) + " / " + bench.FormatMS(c.Figures.P99)
	if work := workShare(p, c); work != nil {
		text += fmt.Sprintf(" (%.2f)", work.Value)
	}
	return text
}

// workShare is a step's background work over that of the arm that did most; nil without one.
func workShare(p *bench.Pooled, c *bench.Cell) *bench.Ratio {
	if work := p.WorkShare(c); c.Background > 0 && work != nil && !math.IsNaN(work.Value) {
		return work
	}
	return nil
}
