// Package page shows records of the path plane's benchmark as one HTML page that loads nothing.
//
// page.go: words and tables. charts.go: pictures. replay.go: how to measure it again.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"temper.dev/temper/internal/bench/report"
	"temper.dev/temper/pathfence/bench/record"
)

//go:embed page.html
var page string

//go:embed page.css
var style string

var tmpl = template.Must(template.New("page").Parse(page))

// Named is a record and what it is called on the page.
type Named struct {
	Name string
	record.Record
}

// Write writes the page.
func Write(w io.Writer, records []Named) error {
	v := view{Style: report.Style() + template.CSS(style)}
	for i, r := range records {
		one, err := newRecordView(fmt.Sprintf("record%d", i+1), r)
		if err != nil {
			return err
		}
		v.Records = append(v.Records, one)
	}
	return tmpl.Execute(w, v)
}

// view is what the template shows.
type view struct {
	Style   template.CSS
	Records []recordView
}

// Bars and Holding are how many bars the page has, and how many of these hold.
func (v view) Bars() (n int) {
	for _, r := range v.Records {
		n += len(r.Bars)
	}
	return n
}

func (v view) Holding() (n int) {
	for _, r := range v.Records {
		n += len(r.Bars) - len(r.Missed())
	}
	return n
}

type recordView struct {
	ID, Name string
	Where    string
	Bars     []record.Bar
	Charts   []template.HTML
	Lines    []line
	Invalid  []string
	Replay   string
	Exact    bool // the same to the last digit
}

// Missed are the bars that do not hold.
func (r recordView) Missed() []record.Bar {
	return slices.DeleteFunc(slices.Clone(r.Bars), record.Bar.Holds)
}

// line is a row of the table of figures.
type line struct {
	record.Line
	First   bool // of its disturbance and path
	Percent int  // of what was offered, answered within the target
}

func newRecordView(id string, r Named) (recordView, error) {
	v := recordView{ID: id, Name: r.Name, Where: where(r.Record), Bars: r.Bars(), Exact: r.Machine.Lab}
	before := ""
	for _, l := range r.Lines() {
		group := l.Disturbance + l.Path
		percent := 0
		if l.Offered.Median > 0 {
			percent = int(100 * min(1, l.Goodput.Median/l.Offered.Median))
		}
		v.Lines = append(v.Lines, line{l, group != before, percent})
		before = group
	}
	for _, row := range r.Rows {
		if !row.Valid {
			v.Invalid = append(v.Invalid, fmt.Sprintf("%s, %s path, %s, repetition %d: %s", row.Disturbance, row.Path, row.Arm, row.Repetition, row.InvalidReason))
		}
	}
	for i, c := range charts(r.Record) {
		c.ID = fmt.Sprintf("%s-chart%d", id, i+1)
		var b strings.Builder
		if err := c.Inline(&b); err != nil {
			return recordView{}, err
		}
		v.Charts = append(v.Charts, template.HTML(b.String())) // every text in it was escaped by plot
	}
	var err error
	v.Replay, err = replay(r.Record)
	return v, err
}

// where says on what it was measured.
func where(r record.Record) string {
	machine := "real processes"
	if r.Machine.Lab {
		machine = "the deterministic lab, whose time is executed instructions"
	}
	return fmt.Sprintf("Kernel %s, %d CPUs, %s; seed %d.", r.Machine.Kernel, r.Machine.CPUs, machine, r.Seed)
}
