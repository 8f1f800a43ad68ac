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

	"temper.dev/temper/internal/base/plot"
	"temper.dev/temper/internal/evidence/bench/report"
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

// Bars are those of all records.
func (v view) Bars() (all bars) {
	for _, r := range v.Records {
		all = append(all, r.Bars...)
	}
	return all
}

// bars say how many of them hold.
type bars []record.Bar

func (b bars) String() string {
	count := map[string]int{}
	for _, one := range b {
		count[one.Verdict()]++
	}
	text := fmt.Sprintf("%d of %d bars hold", count["holds"], len(b))
	for _, not := range []string{"missed", "not measured"} {
		if n := count[not]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, not)
		}
	}
	return text
}

// Hold says whether all do.
func (b bars) Hold() bool {
	return !slices.ContainsFunc(b, func(one record.Bar) bool { return !one.Holds() })
}

type recordView struct {
	ID, Name string
	Where    string
	Bars     bars
	Charts   []template.HTML
	Lines    []line
	Invalid  []string
	Replay   string
	Exact    bool // the same to the last digit
}

// line is a row of the table of figures.
type line struct {
	record.Line
	First   bool // of its disturbance and path
	Percent int  // of what was offered, answered within the target
}

// PathName is what people read for its path.
func (l line) PathName() string { return record.PathName(l.Path) }

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
			v.Invalid = append(v.Invalid, fmt.Sprintf("%s, %s path, %s, repetition %d: %s", row.Disturbance, record.PathName(row.Path), row.Arm, row.Repetition, row.InvalidReason))
		}
	}
	list := charts(r.Record)
	plot.Align(list)
	for i, c := range list {
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
