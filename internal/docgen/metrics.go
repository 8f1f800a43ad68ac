package docgen

import (
	"fmt"
	"strings"

	"temper.dev/temper/internal/status"
)

// Metrics is the page of what Prometheus can read.
func Metrics(list []*status.Metric) string {
	var b strings.Builder
	b.WriteString("# Metrics\n" + notice + "What `temper agent --metrics ADDRESS` serves as `/metrics`, and `temper metrics` prints. Counters and histograms " +
		"start anew when the scheduler is loaded anew. Histograms count by powers of two of a microsecond, and have no sum (`NaN`).\n\n" +
		"| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range list {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(m.Labels, ", "), m.Help)
	}
	return b.String()
}
