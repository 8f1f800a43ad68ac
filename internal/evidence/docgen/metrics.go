package docgen

import (
	"fmt"
	"strings"

	"temper.dev/temper/internal/base/metric"
)

// Metrics is the page of what Prometheus can read.
func Metrics(list []*metric.Metric) string {
	return "# Metrics\n" + notice + "What `temper agent --metrics ADDRESS` serves as `/metrics`, and `temper metrics` prints. Counters and histograms " +
		"start anew when the scheduler is loaded anew. Histograms count by powers of two of a microsecond, and have no sum (`NaN`).\n\n" +
		tableOf(list)
}

// AgentMetrics is the page of what the agent of a cluster's node adds.
func AgentMetrics(list []*metric.Metric) string {
	return "# Metrics of a cluster's node\n" + notice + "What `temper-agent --metrics ADDRESS` serves beside [those of any node](metrics.md). " +
		"Counters are the kernel's, and go on whatever schedules.\n\n" + tableOf(list)
}

// ControllerMetrics is the page of what the controller serves.
func ControllerMetrics(list []*metric.Metric) string {
	return "# Metrics of temper-controller\n" + notice + "What `temper-controller --metrics ADDRESS` serves, beside what its library counts of itself (`controller_runtime_*`, `workqueue_*`, `rest_client_*`). " +
		"Of several replicas the one that works has these.\n\n" + tableOf(list)
}

func tableOf(list []*metric.Metric) string {
	var b strings.Builder
	b.WriteString("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range list {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(m.Labels, ", "), m.Help)
	}
	return b.String()
}
