package advice

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/htmlpage"
	"temper.dev/temper/internal/base/plot"
)

// mostRows is how many rows of a table a page has. The JSON has all.
const mostRows = 200

// WriteHTML writes the advice as one page that loads nothing, in the reader's light or dark scheme.
func (a *Advice) WriteHTML(w io.Writer) error {
	var b strings.Builder
	htmlpage.Begin(&b, "Capacity advice")
	b.WriteString("<div class=\"verdict\">")
	for _, said := range a.verdict() {
		fmt.Fprintf(&b, "<p>%s</p>", html.EscapeString(said))
	}
	b.WriteString("</div>\n")
	htmlpage.Charts(&b, a.charts())
	for _, s := range a.sections() {
		s.writeHTML(&b)
	}
	if len(a.Notes) > 0 {
		b.WriteString("<h2 id=\"notes\">Notes</h2>\n<ul>\n")
		for _, note := range a.Notes {
			fmt.Fprintf(&b, "<li>%s</li>\n", html.EscapeString(note))
		}
		b.WriteString("</ul>\n")
	}
	htmlpage.End(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s section) writeHTML(b *strings.Builder) {
	fmt.Fprintf(b, "<h2 id=\"%s\">%s</h2>\n", s.ID, html.EscapeString(s.Title))
	if s.Said != "" {
		fmt.Fprintf(b, "<p class=\"said\">%s</p>\n", html.EscapeString(s.Said))
	}
	if len(s.Rows) == 0 {
		return
	}
	shown := min(len(s.Rows), mostRows)
	htmlpage.Table(b, s.Title, s.Head, s.Rows[:shown], s.Words...)
	if left := len(s.Rows) - shown; left > 0 {
		fmt.Fprintf(b, "<p class=\"soft\">%d more rows are in the JSON (--json).</p>\n", left)
	}
}

// charts show the nodes, the one with the most first: few nodes and a thousand alike.
func (a *Advice) charts() []plot.Chart {
	if len(a.Nodes) == 0 {
		return nil
	}
	line := func(label string, class int, order func(Node) float64, value func(Node) float64) plot.Series {
		nodes := slices.Clone(a.Nodes)
		slices.SortStableFunc(nodes, func(x, y Node) int {
			return cmp.Or(cmp.Compare(order(y), order(x)), cmp.Compare(y.CPUs, x.CPUs), cmp.Compare(x.Node, y.Node))
		})
		s := plot.Series{Label: label, Class: class, Smooth: len(nodes) > 40}
		for i, n := range nodes {
			s.Line = append(s.Line, plot.Point{X: float64(i + 1), Y: value(n)})
		}
		return s
	}
	requested := func(n Node) float64 { return n.RequestedCPUs }
	critical := func(n Node) float64 { return n.CriticalCPUs }
	full := plot.Chart{ID: "full", Title: "How full nodes are", XLabel: "nodes, by what is requested", YLabel: "CPUs", FromZero: true, NeverLog: true, XTicks: a.ticks(),
		Description: "CPUs that each node offers, and CPUs that its pods request; where it is known, what they use.",
		Series: []plot.Series{
			line("offered", 2, requested, func(n Node) float64 { return n.CPUs }), line("requested", 0, requested, requested),
		}}
	if slices.ContainsFunc(a.Nodes, func(n Node) bool { return n.UsedCPUs != nil }) {
		full.Series = append(full.Series, line(a.usedName(), 3, requested, func(n Node) float64 {
			if n.UsedCPUs == nil {
				return 0
			}
			return *n.UsedCPUs
		}))
	}
	return []plot.Chart{full, {ID: "rule", Title: "The sizing rule", XLabel: "nodes, by what critical pods want", YLabel: "CPUs", FromZero: true, NeverLog: true, XTicks: a.ticks(),
		Description: "CPUs that critical pods want on each node, and its physical cores but one, which they must not exceed.",
		Series: []plot.Series{
			line("physical cores but one", 2, critical, func(n Node) float64 { return n.RoomCPUs }), line("critical", 0, critical, critical),
		}}}
}

// ticks are at the first node, the last one, and at most two between.
func (a *Advice) ticks() (ticks []plot.Tick) {
	for i := range 4 {
		at := 1 + i*(len(a.Nodes)-1)/3
		if i == 0 || float64(at) > ticks[len(ticks)-1].At {
			ticks = append(ticks, plot.Tick{At: float64(at), Label: fmt.Sprint(at)})
		}
	}
	return ticks
}
