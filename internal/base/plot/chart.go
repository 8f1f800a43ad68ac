// Package plot draws line charts as SVG that need nothing but themselves: they follow the reader's light or dark
// scheme, and tell series apart by marker and dash as well as by colour.
package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Point is in data units.
type Point struct{ X, Y float64 }

// Tick is a labelled place on the x axis.
type Tick struct {
	At    float64
	Label string
}

// Series is a line of pooled points, with single runs beside it.
type Series struct {
	Label   string
	Class   int // 0 to Classes-1: colour, dash and marker
	Line    []Point
	Runs    []Point // small dots
	Invalid []Point // crosses; outside the axis they are drawn at its edge
	Smooth  bool    // a curve of many points: no markers
}

// Level is a horizontal line; its label stands in the legend, where it hides no data.
type Level struct {
	Y     float64
	Label string
}

// Span is a part of the x axis during which something was otherwise.
type Span struct{ From, To float64 }

const spanClass = 5 // whose colour is a grey

// Chart is one plot.
type Chart struct {
	ID             string // unique on the page, of letters, digits and dashes
	Title          string
	Description    string // for those who cannot see it
	XLabel, YLabel string
	XTicks         []Tick
	Series         []Series
	Level          *Level
	Spans          []Span // shaded
	SpanName       string // what a shade is, for the legend
	RunName        string // what a small dot is, for the legend: "one seed"
	InvalidName    string // what a cross is
	FromZero       bool   // the y axis starts at 0, unless it is logarithmic
	NeverLog       bool   // otherwise the y axis is logarithmic where values differ tenfold, and says so

	leastRows int // of the legend
}

// Size of a chart in SVG units, and of its margins.
const (
	Width        = 460.0
	plotHeight   = 230.0
	marginLeft   = 54.0
	marginRight  = 16.0
	titleHeight  = 30.0
	legendHeight = 20.0
	marginBottom = 50.0
)

// Inline writes the chart as an <svg> for a page that holds CSS.
func (c Chart) Inline(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		Width, c.height(), c.ID, c.ID, c.ID, html.EscapeString(c.Title), c.ID, html.EscapeString(c.Description))
	c.draw(&b)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Align gives charts that stand side by side legends of the same height, so that their axes are at one level.
func Align(charts []Chart) {
	rows := 0
	for _, c := range charts {
		rows = max(rows, c.legendRows())
	}
	for i := range charts {
		charts[i].leastRows = rows
	}
}

// WriteFile writes charts side by side as one SVG file with its own style.
func WriteFile(w io.Writer, title, description string, charts ...Chart) error {
	Align(charts)
	height := 0.0
	for _, c := range charts {
		height = math.Max(height, c.height())
	}
	var b strings.Builder
	width := Width * float64(len(charts))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" role="img" aria-labelledby="title desc">`, width, height, width, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title><desc id=\"desc\">%s</desc>\n<style>svg{%s}\n@media (prefers-color-scheme:dark){svg{%s}}\n%s</style>\n",
		html.EscapeString(title), html.EscapeString(description), LightColours, DarkColours, CSS)
	fmt.Fprintf(&b, "<rect class=\"paper\" width=\"%g\" height=\"%g\"/>\n", width, height)
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(%g 0)">`, float64(i)*Width)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Chart) height() float64 {
	return titleHeight + legendHeight*float64(c.legendRows()) + plotHeight + marginBottom
}

// draw writes the chart's inside.
func (c Chart) draw(b *strings.Builder) {
	text(b, marginLeft, 20, "title", "start", c.Title)
	c.drawLegend(b)
	top := titleHeight + legendHeight*float64(c.legendRows())
	x := c.xScale()
	y := c.yScale(top)
	for _, s := range c.Spans {
		from, to := x.at(s.From), x.at(s.To)
		fmt.Fprintf(b, `<g class="s%d"><rect stroke="none" opacity=".2" x="%.1f" y="%.1f" width="%.1f" height="%g"/></g>`, spanClass, from, top, to-from, plotHeight)
	}
	c.drawAxes(b, x, y, top)
	if c.Level != nil {
		at := y.at(c.Level.Y)
		fmt.Fprintf(b, `<line class="level" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, marginLeft, Width-marginRight, at, at)
	}
	for i, s := range c.Series {
		c.drawSeries(b, s, x, y, c.dodge(i))
	}
}

// dodge moves a series sideways by a few units so that equal series stay apart.
func (c Chart) dodge(i int) float64 {
	const apart = 6
	if c.Series[i].Smooth {
		return 0
	}
	return apart * (float64(i) - float64(len(c.Series)-1)/2)
}

func (c Chart) drawSeries(b *strings.Builder, s Series, x, y scale, dx float64) {
	fmt.Fprintf(b, `<g class="s%d">`, s.Class%Classes)
	for _, p := range s.Runs {
		fmt.Fprintf(b, `<circle class="run" cx="%.1f" cy="%.1f" r="2.2"/>`, x.at(p.X)+dx, y.at(p.Y))
	}
	var path []string
	for _, p := range s.Line {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p.X)+dx, y.at(p.Y)))
	}
	if len(path) > 1 {
		fmt.Fprintf(b, `<polyline points="%s"/>`, strings.Join(path, " "))
	}
	if !s.Smooth {
		for _, p := range s.Line {
			marker(b, s.Class, x.at(p.X)+dx, y.at(p.Y))
		}
	}
	for _, p := range s.Invalid {
		cx, cy := x.at(p.X)+dx, y.at(p.Y)
		fmt.Fprintf(b, `<path class="invalid" d="M%.1f %.1fl8 8m0 -8l-8 8"/>`, cx-4, cy-4)
	}
	b.WriteString("</g>\n")
}

func text(b *strings.Builder, x, y float64, class, anchor, s string) {
	fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, class, x, y, anchor, html.EscapeString(s))
}
