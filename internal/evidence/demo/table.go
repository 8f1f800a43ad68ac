package demo

import (
	"fmt"
	"io"
	"strings"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

const (
	header = "%-12s%-9s  %8s %8s  %8s %8s  %8s %8s  %s\n"
	line   = "%-12s%-9s  %8s %8s  %8s %8s  %8s %8s  %15s\n"
)

// WriteTable writes one scenario for a person, the arms side by side at each step.
func WriteTable(w io.Writer, p *bench.Pooled) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, and how many times the floor\n\n", p.Plan(), p.TimeUnit())
	fmt.Fprintf(&b, header, "spinners", "arm", "p50", "", "p90", "", "p99", "", "background work")
	arms := ordered(p)
	for i := range arms[0].Cells {
		step := arms[0].Cells[i].Label()
		for _, a := range arms {
			writeRow(&b, p, a, a.Cell(arms[0].Cells[i].Background, arms[0].Cells[i].Visit), step)
			step = ""
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRow(b *strings.Builder, p *bench.Pooled, a *bench.PoolArm, c *bench.Cell, step string) {
	if c.Figures == nil {
		fmt.Fprintf(b, "%-12s%-9s  %s\n", step, a.Label, c.InvalidText())
		return
	}
	cells := []any{step, a.Label}
	for _, name := range []bench.Figure{bench.P50, bench.P90, bench.P99} {
		cells = append(cells, bench.FormatMS(c.Figures.At(name)), times(p.OverFloor(c, name)))
	}
	work := ""
	if share := p.WorkShare(c); share != nil && c.Background > 0 {
		work = fmt.Sprintf("%.2f cores %3.0f %%", c.Figures.BackgroundCores, 100*share.Value)
	}
	fmt.Fprintf(b, "%s\n", strings.TrimRight(fmt.Sprintf(line, append(cells, work)...), " \n"))
}

func times(r *bench.Ratio) string {
	if r == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f ×", r.Value)
}

// WriteLegend explains the tables' words once.
func WriteLegend(w io.Writer) error {
	var b strings.Builder
	for _, name := range []string{stock, bestStock, temper} {
		arm, _ := plan.FindArm(name)
		fmt.Fprintf(&b, "%-9s %s\n", name, arm.Summary)
	}
	b.WriteString(`spinners: threads of background work that never sleep. Floor: the smaller figure at 0 spinners of Temper's
and the best stock arm's. Background work: CPU time, and iterations done, over the arm that did most beside the same spinners.
`)
	_, err := io.WriteString(w, b.String())
	return err
}

// ordered are the arms from stock to Temper.
func ordered(p *bench.Pooled) []*bench.PoolArm {
	var arms []*bench.PoolArm
	for _, name := range []string{stock, bestStock, temper} {
		if a := p.Arm(name); a != nil {
			arms = append(arms, a)
		}
	}
	return arms
}
