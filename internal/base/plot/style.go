package plot

import (
	"fmt"
	"strings"
)

// Classes is how many looks a series can have.
const Classes = 7

// LightColours and DarkColours are CSS custom properties for either scheme: the paper, the ink and one colour for each
// class. They derive from the palette of Okabe and Ito, darkened or lightened to at least 4.5:1 against the paper.
const (
	LightColours = `--paper:#ffffff;--ink:#1c2024;--soft:#5b6570;--line:#dfe3e8;--c0:#0067a3;--c1:#b84a00;--c2:#9c3f76;--c3:#00704f;--c4:#7a5f00;--c5:#5f6670;--c6:#4b3fb5`
	DarkColours  = `--paper:#14181d;--ink:#e8ebee;--soft:#a3adb8;--line:#2f3741;--c0:#5bb8f0;--c1:#ff9248;--c2:#e59ac4;--c3:#35cfa0;--c4:#e5cf55;--c5:#aab2bc;--c6:#a9a1f5`
)

// CSS styles charts by LightColours or DarkColours.
var CSS = baseCSS + seriesCSS()

const baseCSS = `text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}
text.title{font-size:15px;font-weight:600}text.tick,text.label{fill:var(--soft)}
.paper{fill:var(--paper)}.grid{stroke:var(--line)}.axis{stroke:var(--soft)}
.level{stroke:var(--ink);stroke-width:1.3;stroke-dasharray:2 3}
polyline{fill:none;stroke-width:2;stroke-linejoin:round}.run{opacity:.5;stroke:none}
.invalid{fill:none;stroke-width:2}.any .run{fill:var(--soft)}.any .invalid{stroke:var(--soft)}
`

// dashes tell lines apart without colour; Temper's is solid.
var dashes = [Classes]string{"none", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 3"}

func seriesCSS() string {
	var b strings.Builder
	for i, dash := range dashes {
		fmt.Fprintf(&b, ".s%d{stroke:var(--c%d);fill:var(--c%d)}.s%d polyline{stroke-dasharray:%s}\n", i, i, i, i, dash)
	}
	b.WriteString(".s0 polyline{stroke-width:3}\n")
	return b.String()
}

// marker draws the class's mark.
func marker(b *strings.Builder, class int, x, y float64) {
	shapes := [Classes]string{
		"",                                    // a circle, below
		"m-4 -4h8v8h-8z",                      // square
		"m0 -5l5 9h-10z",                      // triangle
		"m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z", // diamond
		"m0 5l5 -9h-10z",                      // triangle, point down
		"m-5 -1.5h10v3h-10z",                  // bar
		"m-1.5 -5h3v10h-3z",                   // upright bar
	}
	if class%Classes == 0 {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4.5"/>`, x, y)
		return
	}
	fmt.Fprintf(b, `<path d="M%.1f %.1f%s"/>`, x, y, shapes[class%Classes])
}

// legend entries flow over rows; widths are estimated, because SVG cannot measure text.
const (
	legendSample = 30.0
	legendLetter = 7.6
	legendGap    = 16.0
)

type legendEntry struct {
	label string
	draw  func(b *strings.Builder, x, y float64) // the sample, whose left end is there
	x     float64
	row   int
}

// legend has the series, then the level, the dots and the crosses, as far as the chart has them.
func (c Chart) legend() []legendEntry {
	var out []legendEntry
	var runs, invalid int
	for _, s := range c.Series {
		runs, invalid = runs+len(s.Runs), invalid+len(s.Invalid)
		out = append(out, legendEntry{label: s.Label, draw: s.drawSample})
	}
	add := func(wanted bool, label, sample string) {
		if wanted && label != "" {
			out = append(out, legendEntry{label: label, draw: func(b *strings.Builder, x, y float64) {
				fmt.Fprintf(b, `<g class="any" transform="translate(%.1f %.1f)">%s</g>`, x, y, sample)
			}})
		}
	}
	if c.Level != nil {
		add(true, c.Level.Label, fmt.Sprintf(`<path class="level" d="M0 0h%g"/>`, legendSample))
	}
	add(len(c.Spans) > 0, c.SpanName, fmt.Sprintf(`<g class="s%d"><rect stroke="none" opacity=".2" y="-7" width="%g" height="14"/></g>`, spanClass, legendSample))
	add(runs > 0, c.RunName, fmt.Sprintf(`<circle class="run" cx="%g" cy="0" r="2.2"/>`, legendSample/2))
	add(invalid > 0, c.InvalidName, fmt.Sprintf(`<path class="invalid" d="M%g -4l8 8m0 -8l-8 8"/>`, legendSample/2-4))
	x, row := marginLeft, 0
	for i := range out {
		width := legendSample + 6 + legendLetter*float64(len(out[i].label))
		if x+width > Width-marginRight && x > marginLeft {
			x, row = marginLeft, row+1
		}
		out[i].x, out[i].row = x, row
		x += width + legendGap
	}
	return out
}

func (s Series) drawSample(b *strings.Builder, x, y float64) {
	fmt.Fprintf(b, `<g class="s%d"><polyline points="%.1f,%.1f %.1f,%.1f"/>`, s.Class%Classes, x, y, x+legendSample, y)
	marker(b, s.Class, x+legendSample/2, y)
	b.WriteString("</g>")
}

func (c Chart) legendRows() int {
	entries := c.legend()
	if len(entries) == 0 {
		return c.leastRows
	}
	return max(entries[len(entries)-1].row+1, c.leastRows)
}

func (c Chart) drawLegend(b *strings.Builder) {
	for _, e := range c.legend() {
		y := titleHeight + legendHeight*float64(e.row) + 8
		e.draw(b, e.x, y)
		text(b, e.x+legendSample+6, y+4, "name", "start", e.label)
	}
	b.WriteString("\n")
}
