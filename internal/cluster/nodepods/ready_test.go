package nodepods

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/agent"
)

func TestUnready(t *testing.T) {
	const kernel, other = "6.18.15", "6.6.0"
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	exits := func(status int, ago time.Duration) []agent.Exit {
		return []agent.Exit{{Time: now.Add(-ago), Status: status, Text: "the kernel threw scx_temper out"}}
	}
	for _, c := range []struct {
		name   string
		status metav1.ConditionStatus
		reason string
		could  string // the kernel with which tiers were enforced last
		off    *agent.Off
		exits  []agent.Exit
		want   string // in why not; "": ready
	}{
		{name: "attached", status: metav1.ConditionTrue, reason: reasonAttached, could: kernel},
		{name: "starts", status: metav1.ConditionFalse, reason: reasonStarting, want: "not known yet what is in force"},
		{name: "was stopped", status: metav1.ConditionFalse, reason: reasonStopped, could: kernel, want: "not known yet what is in force"},
		{name: "has heard nothing", status: metav1.ConditionFalse, reason: agent.NotKnown, off: &agent.Off{Reason: agent.NotKnown}, want: "not known yet what is in force"},
		{name: "a kernel that never could", status: metav1.ConditionFalse, reason: "NoSchedExt"},
		{name: "another kernel could", status: metav1.ConditionFalse, reason: "NoSchedExt", could: other},
		{name: "its predecessor could", status: metav1.ConditionFalse, reason: "LoadFailed", could: kernel, want: "tiers were enforced here with this kernel, and are not now"},
		{name: "its predecessor could, and it is to leave the node alone", status: metav1.ConditionFalse, reason: agent.OffByNode,
			could: kernel, off: &agent.Off{Reason: agent.OffByNode}},
		{name: "thrown out, and back", status: metav1.ConditionTrue, reason: reasonAttached, could: kernel,
			exits: exits(exit.Ejected, time.Minute), want: "thrown the scheduler out less than 5m0s ago"},
		{name: "thrown out long ago", status: metav1.ConditionTrue, reason: reasonAttached, could: kernel, exits: exits(exit.Ejected, 6*time.Minute)},
		{name: "its CPUs changed", status: metav1.ConditionTrue, reason: reasonAttached, could: kernel, exits: exits(exit.Hotplug, time.Minute)},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := &v1alpha1.TemperNodeStatus{KernelVersion: kernel, EnforcedKernelVersion: c.could,
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: c.status, Reason: c.reason}}}
			why := unready(agent.State{Started: now.Add(-time.Hour), Off: c.off, Exits: c.exits}, said, now)
			if (why == nil) != (c.want == "") || why != nil && !strings.Contains(why.Error(), c.want) {
				t.Errorf("got %v, want %q", why, c.want)
			}
		})
	}
	late := agent.State{Started: now.Add(-time.Minute), Exits: exits(exit.Ejected, 2*time.Minute)}
	said := &v1alpha1.TemperNodeStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue, Reason: reasonAttached}}}
	if why := unready(late, said, now); why != nil {
		t.Errorf("thrown out before this agent started: %v", why)
	}
}

func TestPruned(t *testing.T) {
	sent := v1alpha1.TemperNodeStatus{KernelVersion: "6.18.15", EnforcedKernelVersion: "6.18.15",
		Tiers: []v1alpha1.TierStatus{{Tier: "system"}, {Tier: "critical", CPUSeconds: "2.500"}}}
	for _, c := range []struct {
		name string
		drop func(s *v1alpha1.TemperNodeStatus)
		want string // that is not kept; "": all is
	}{
		{"all is kept", func(*v1alpha1.TemperNodeStatus) {}, ""},
		{"a field", func(s *v1alpha1.TemperNodeStatus) { s.EnforcedKernelVersion = "" }, "status.enforcedKernelVersion"},
		{"one within a list", func(s *v1alpha1.TemperNodeStatus) { s.Tiers[1].CPUSeconds = "" }, "status.tiers[1].cpuSeconds"},
		{"a list", func(s *v1alpha1.TemperNodeStatus) { s.Tiers = nil }, "status.tiers"},
		{"more than was sent", func(s *v1alpha1.TemperNodeStatus) { s.Policy = "default" }, ""},
	} {
		kept := sent.DeepCopy()
		c.drop(kept)
		why := pruned(&sent, kept)
		if (why == nil) != (c.want == "") || why != nil && !strings.Contains(why.Error(), "keep "+c.want+" of") {
			t.Errorf("%s: got %v, want %q", c.name, why, c.want)
		}
	}
}
