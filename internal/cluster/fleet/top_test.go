package fleet

import (
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/node/nodetop"
)

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func report(at time.Time, cpu string) Node {
	n := Node{Name: "b"}
	n.Reported, n.Rung = metav1.NewTime(at), "scx"
	n.Tiers = []v1alpha1.TierStatus{{Tier: "critical", Pods: []string{"shop/cart"}, CPUSeconds: cpu, WaitP50Microseconds: 4, WaitP99Microseconds: 256}, {Tier: "background"}}
	n.Gap = &v1alpha1.GapStatus{OverrunP99Microseconds: 64}
	return n
}

// A report counts until the next, and rates are of the time between two.
func TestReports(t *testing.T) {
	var rounds []*nodetop.Round
	for _, n := range []Node{report(start, "10.0"), report(start.Add(time.Minute), "40.0"), report(start.Add(time.Minute), "40.0")} {
		l := nodetop.Look{Node: n.Name}
		fill(&l, n)
		now := &nodetop.Round{Nodes: []nodetop.Look{l}}
		if len(rounds) > 0 {
			nodetop.Compare(rounds[len(rounds)-1], now)
		}
		rounds = append(rounds, now)
	}
	for _, r := range rounds[1:] {
		l := r.Nodes[0]
		if c := l.Tiers[0]; c.CPU.Rate == nil || *c.CPU.Rate != 0.5 || c.Wait.P99US != 256 || l.Overrun.P99US != 64 || l.Pods[0].Name != "shop/cart" {
			t.Errorf("%+v", l)
		}
	}
	text, err := os.ReadFile("../../node/status/testdata/alone.prom")
	if err != nil {
		t.Fatal(err)
	}
	asked := nodetop.Look{Node: "b", Time: start.Add(2 * time.Minute), Live: true}
	if err := asked.FromMetrics(text); err != nil {
		t.Fatal(err)
	}
	mixed := &nodetop.Round{Nodes: []nodetop.Look{asked}}
	nodetop.Compare(rounds[2], mixed)
	if mixed.Nodes[0].Overrun.Rate != nil {
		t.Error("a report is compared with what was asked")
	}
}
