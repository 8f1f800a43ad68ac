// Package htmlpage writes pages with plots and tables that load nothing, in the reader's light or dark scheme. Not by
// html/template, which keeps every method of every type in the program: 24 MB of kubectl-temper.
package htmlpage

import (
	_ "embed"
	"fmt"
	"html"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/plot"
)

//go:embed page.css
var style string

// Begin writes all up to the heading. End ends the page.
func Begin(b *strings.Builder, title string) {
	title = html.EscapeString(title)
	fmt.Fprintf(b, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%[1]s</title>
<style>:root{%[2]s}
@media (prefers-color-scheme:dark){:root{%[3]s}}
%[4]s%[5]s</style>
</head>
<body>
<h1>%[1]s</h1>
`, title, plot.LightColours, plot.DarkColours, plot.CSS, style)
}

// End ends what Begin has begun.
func End(b *strings.Builder) { b.WriteString("</body>\n</html>\n") }

// Charts writes charts side by side, as far as there is room.
func Charts(b *strings.Builder, charts []plot.Chart) {
	plot.Align(charts)
	b.WriteString("<div class=\"charts\">\n")
	for _, c := range charts {
		_ = c.Inline(b) // a strings.Builder takes all
	}
	b.WriteString("</div>\n")
}

// Table writes a table; it scrolls where the page is narrow. The first column and those in words are text, the others numbers.
func Table(b *strings.Builder, name string, head []string, rows [][]string, words ...int) {
	fmt.Fprintf(b, `<div class="wide" tabindex="0" role="region" aria-label="%s"><table><thead>`, html.EscapeString(name))
	writeRow(b, `th scope="col"`, "th", head, words)
	b.WriteString("</thead><tbody>\n")
	for _, row := range rows {
		writeRow(b, "td", "td", row, words)
	}
	b.WriteString("</tbody></table></div>\n")
}

func writeRow(b *strings.Builder, open, end string, cells []string, words []int) {
	b.WriteString("<tr>")
	for i, cell := range cells {
		class := ""
		if i == 0 || slices.Contains(words, i) {
			class = ` class="words"`
		}
		fmt.Fprintf(b, "<%s%s>%s</%s>", open, class, html.EscapeString(cell), end)
	}
	b.WriteString("</tr>\n")
}
