package fleet

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/fixture"
)

func TestWrite(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	condition := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
	}
	enforced := v1alpha1.TemperNodeStatus{
		Reported: metav1.NewTime(now.Add(-20 * time.Second)), Rung: "scx", Policy: "default", KernelVersion: "6.18.15", Reservation: resource.NewMilliQuantity(2500, resource.DecimalSI),
		Conditions: condition(metav1.ConditionTrue, "Attached", "scx_temper has attached"),
		Tiers: []v1alpha1.TierStatus{
			{Tier: "critical", Pods: []string{"shop/web", "shop/cart"}, CPUSeconds: "12.250", WaitP50Microseconds: 4, WaitP99Microseconds: 256, WaitMaxMicroseconds: 20000},
			{Tier: "background", Pods: []string{"batch/resize"}},
		},
		Gap:      &v1alpha1.GapStatus{OverrunP50Microseconds: 16, OverrunP99Microseconds: 64},
		Problems: []string{"pod a/b says that it is x, which is c/d"},
	}
	stale := enforced
	stale.Reported, stale.Problems = metav1.NewTime(now.Add(-time.Hour)), nil
	left := v1alpha1.TemperNodeStatus{
		Reported: metav1.NewTime(now), Rung: "observe", Conditions: condition(metav1.ConditionFalse, "SafeModeNode", "safe mode"),
	}
	ahead := enforced
	ahead.Reported = metav1.NewTime(now.Add(10 * time.Minute))
	nodes := []Node{{"a", false, "", enforced}, {"b", true, "", stale}, {"c", false, "", left}, {"d", true, "", v1alpha1.TemperNodeStatus{}},
		{"e", false, "", ahead}, {"f", true, "no agent's pod is there, and no DaemonSet of agents is", v1alpha1.TemperNodeStatus{}},
		{"g", false, "agent's pod temper-system/temper-agent-x is not ready: its log says why", left}}
	for _, c := range []struct {
		node int
		pod  string
		tier v1alpha1.Tier
		want string
	}{
		{0, "shop/web", "critical", "yes"},
		{0, "shop/web", "background", "no (it is critical there)"},
		{0, "shop/new", "critical", "no (its node does not report it)"},
		{1, "shop/web", "critical", "unknown (was true)"},
		{2, "shop/web", "critical", "no (SafeModeNode)"},
		{3, "shop/web", "critical", "unknown"},
	} {
		if got := nodes[c.node].InForce(c.pod, c.tier); got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.pod, nodes[c.node].Name, got, c.want)
		}
	}
	var all, one bytes.Buffer
	Write(&all, nodes, now)
	fixture.Golden(t, "all.txt", all.String())
	WriteOne(&one, nodes[0], now)
	fixture.Golden(t, "one.txt", one.String())
	var none bytes.Buffer
	nodes[0].Reservation = resource.NewMilliQuantity(0, resource.DecimalSI)
	WriteOne(&none, nodes[0], now)
	if !strings.Contains(none.String(), "\nreservation  of no CPU: critical pods request none") {
		t.Errorf("nothing is reserved, and the table says\n%s", none.String())
	}
}
