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
	nodes := []Node{
		{Name: "a", TemperNodeStatus: enforced},
		{Name: "b", Stale: true, TemperNodeStatus: stale},
		{Name: "c", TemperNodeStatus: left},
		{Name: "d", Stale: true},
		{Name: "e", TemperNodeStatus: ahead},
		{Name: "f", Stale: true, Agent: "no agent's pod is there, and no DaemonSet of agents is"},
		{Name: "g", Agent: "agent's pod temper-system/temper-agent-x is not ready: its log says why", TemperNodeStatus: left},
		{Name: "h", Heard: now.Add(-5 * time.Second), TemperNodeStatus: ahead},
		{Name: "i", Heard: now.Add(-5 * time.Second), TemperNodeStatus: stale},
	}
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

// The API server's clock counts where it says when it took a report, and a node's own where it does not.
func TestReportsAgeByTheClockOfTheAPIServer(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	took := func(subresource string, ago time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Subresource: subresource, Time: &metav1.Time{Time: now.Add(-ago)}}
	}
	for _, c := range []struct {
		name     string
		reported time.Duration // ago
		fields   []metav1.ManagedFieldsEntry
		stale    bool
	}{
		{"just now", 0, []metav1.ManagedFieldsEntry{took("status", 0)}, false},
		{"a clock that is behind", time.Hour, []metav1.ManagedFieldsEntry{took("status", time.Minute)}, false},
		{"a clock that is ahead", -time.Hour, []metav1.ManagedFieldsEntry{took("status", 4*time.Minute)}, true},
		{"who writes something else does not report", 0, []metav1.ManagedFieldsEntry{took("status", 4*time.Minute), took("", 0)}, true},
		{"of two the last", 0, []metav1.ManagedFieldsEntry{took("status", time.Minute), took("status", time.Hour)}, false},
		{"without managed fields, new", time.Minute, nil, false},
		{"without managed fields, old", time.Hour, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := &v1alpha1.TemperNode{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.fields}, Status: v1alpha1.TemperNodeStatus{Reported: metav1.NewTime(now.Add(-c.reported))}}
			if got := IsStale(report, now); got != c.stale {
				t.Errorf("stale %t, want %t", got, c.stale)
			}
		})
	}
}
