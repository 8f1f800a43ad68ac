package scale

import (
	"strings"
	"testing"
)

func TestBars(t *testing.T) {
	var r Record
	r.Add("met", 49.9996, "MiB").AtMost(50)
	r.Add("at the bar", 50, "MiB").AtMost(50)
	r.Add("too much", 50.001, "MiB").AtMost(50)
	r.Add("too few", 19.9, "").AtLeast(20)
	r.Add("enough", 20, "").AtLeast(20)
	r.Add("told", 7, "s")
	failed := r.Failed()
	if len(failed) != 2 || failed[0].String() != "too much: 50.001 MiB, bar at most 50" || failed[1].String() != "too few: 19.9, bar at least 20" {
		t.Errorf("%v", failed)
	}
}

func TestTable(t *testing.T) {
	r := Record{Scenario: "Idle", Agent: "0123456789abcdef", Kernel: "6.18", Cluster: "v1.36.3"}
	r.Add("memory", 42, "MiB").AtMost(50)
	r.Add("CPU", 0.7, "%").AtMost(0.5)
	r.Add("pods", 110, "")
	var table strings.Builder
	r.Table(&table)
	const want = "\n## Idle\n\nAgent 0123456789ab, Kubernetes v1.36.3, kernel 6.18.\n\n| figure | | bar | |\n| --- | --- | --- | --- |\n" +
		"| memory | 42 MiB | at most 50 | met |\n| CPU | 0.7 % | at most 0.5 | **missed** |\n| pods | 110 |  |  |\n"
	if got := table.String(); got != want {
		t.Errorf("%s", strings.ReplaceAll(got, "\n", "\n\t"))
	}
}
