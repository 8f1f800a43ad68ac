package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// TableOption changes how a table is written.
type TableOption func(*tableOptions)

type tableOptions struct{ colour bool }

// Colour marks, for a terminal, the smallest p99 of each step in green and invalid windows in red.
func Colour() TableOption { return func(o *tableOptions) { o.colour = true } }

const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	plain = "\x1b[0m"
)

// WriteTable writes one record as a table for a person.
func WriteTable(w io.Writer, r Record, options ...TableOption) error {
	p, err := Pool([]Record{r})
	if err != nil {
		return err
	}
	return p.WriteTable(w, options...)
}

// WriteTable writes the pool as a table for a person: a row for each arm and step, invalid windows marked.
func (p *Pooled) WriteTable(w io.Writer, options ...TableOption) error {
	var o tableOptions
	for _, option := range options {
		option(&o)
	}
	rows := p.Rows()
	g := grid{}
	for i, line := range tableHeader {
		for _, c := range p.MoreColumns() {
			line = append(slices.Clip(line), c[i])
		}
		g.add(line...)
	}
	for _, r := range rows {
		g.add(p.RowText(r)...)
	}
	if o.colour {
		g.style = func(row, column int, padded string) string {
			if i := row - len(tableHeader); i >= 0 && column == p99Column && p.leads(rows[i].Cell) {
				return green + padded + plain
			}
			return padded
		}
	}
	var b strings.Builder
	fmt.Fprintln(&b, p.headline())
	for i, line := range g.lines() {
		fmt.Fprintln(&b, line)
		if row := i - len(tableHeader); row >= 0 {
			writeInvalid(&b, rows[row].Cell, o.colour)
		}
	}
	fmt.Fprintln(&b, tableLegend)
	if len(p.MoreColumns()) > 0 {
		fmt.Fprintln(&b, moreLegend)
	}
	if text := p.SpinnerText(); text != "" {
		fmt.Fprintln(&b, text)
	}
	if len(p.Seeds) > 1 {
		fmt.Fprintln(&b, intervalLegend)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Row is one step of one arm.
type Row struct {
	Arm  *PoolArm
	Cell *Cell
}

// Rows are all steps of all arms.
func (p *Pooled) Rows() []Row {
	var rows []Row
	for i := range p.Arms {
		for j := range p.Arms[i].Cells {
			rows = append(rows, Row{&p.Arms[i], &p.Arms[i].Cells[j]})
		}
	}
	return rows
}

var tableHeader = [][]string{
	{"", "", "p50", "over", "over", "p90", "over", "over", "p99", "over", "over", "work/", "work", "idle"},
	{"arm (preempt)", "bg", "ms", "alone", "floor", "ms", "alone", "floor", "ms", "alone", "floor", "most", "cores", "cores"},
}

// p99Column is where tableHeader has p99.
const p99Column = 8

const tableLegend = `bg: background spinners. alone: the same arm at 0 spinners. floor: the smaller figure at 0 spinners of Temper's
and the best stock arm's. work/most: background iterations, over the arm that did most at this step.`

const intervalLegend = "[low, high]: 95 % interval, bootstrap over seeds."

// MoreColumns are the two lines of header of each column that only some pools have: a service that computes is judged
// by its mean and by its throughput too.
func (p *Pooled) MoreColumns() [][2]string {
	if p.Conditions.Scenario != web {
		return nil
	}
	return [][2]string{{"mean", "ms"}, {"over", "alone"}, {"requests", "a second"}, {"over", "alone"}}
}

const moreLegend = "requests a second: those that were answered. A spinner of this scenario resizes images."

// SpinnerText says what a spinner is, where it is a command of the user's.
func (p *Pooled) SpinnerText() string {
	s := p.Conditions.Spinner
	switch s.Unit {
	case "":
		return ""
	case "runs", "lines":
		return fmt.Sprintf("A spinner is: %s. Its work is counted in %s.", s.Command, s.Unit)
	}
	return fmt.Sprintf("A spinner is: %s. Its work is what it prints after %q.", s.Command, s.Unit)
}

// RowText is a row of the table, a cell for each column of its header and of MoreColumns.
func (p *Pooled) RowText(r Row) []string {
	row := []string{fmt.Sprintf("%s (%s)", r.Arm.Label, r.Arm.Preempt), r.Cell.Label()}
	shown := r.Cell.shown()
	for _, name := range []Figure{P50, P90, P99} {
		toFloor := formatValue(p.OverFloor(r.Cell, name))
		if name == P99 {
			toFloor = FormatRatio(p.OverFloor(r.Cell, name))
		}
		row = append(row, FormatMS(shown.At(name)), formatValue(p.OverAlone(r.Arm, r.Cell, name)), toFloor)
	}
	row = append(row, formatValue(p.WorkShare(r.Cell)), fmt.Sprintf("%.2f", shown.BackgroundCores), fmt.Sprintf("%.2f", shown.IdleCores))
	if len(p.MoreColumns()) == 0 {
		return row
	}
	return append(row, FormatMS(shown.Mean), formatValue(p.OverAlone(r.Arm, r.Cell, Mean)),
		fmt.Sprintf("%.0f", shown.Requests/p.Conditions.Seconds), formatValue(p.OverAlone(r.Arm, r.Cell, Requests)))
}

// shown are the figures to print: the pooled ones or, where no window counts, the first window's, which is marked.
func (c *Cell) shown() Figures {
	if c.Figures != nil {
		return *c.Figures
	}
	return FiguresOf(c.Windows[0].Step)
}

// leads says whether no arm has a smaller p99 at the cell's step.
func (p *Pooled) leads(c *Cell) bool {
	best := p.pick(anyArm, c.Background, c.Visit, P99, smaller)(-1)
	return c.Figures != nil && !math.IsNaN(best) && c.Figures.P99 == best
}

func writeInvalid(b *strings.Builder, c *Cell, colour bool) {
	text := c.InvalidText()
	if text == "" {
		return
	}
	if colour {
		text = red + text + plain
	}
	fmt.Fprintln(b, "  !", text)
}
