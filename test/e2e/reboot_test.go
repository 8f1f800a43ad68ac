//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
)

// A node that goes down and comes up again enforces by itself, and by what it is told then: cgroups have other numbers, and
// the scheduler, the agent and the tier map are new.
func TestReboot(t *testing.T) {
	b := newToolbox(t)
	awaitEnforced(t, metav1.ConditionTrue)
	pod := podOf("kube-system", "rebooted", forever)
	pod.Spec.PriorityClassName = "temper-critical"
	runPod(t, pod)
	awaitTier(t, pod, "critical")
	before := bootID(t)

	// As a power cut does it: what has reached the disk is all that is left.
	_, _ = b.try("sync; echo b >/proc/sysrq-trigger")
	select {
	case <-machine.ended:
	case <-time.After(patience):
		t.Fatal("the node does not go down")
	}
	old := status(t).Reported
	if err := machine.start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is up again", func() (bool, string) {
		now := bootID(t)
		return now != before, now
	})
	awaitReady(t, corev1.ConditionTrue)
	eventually(t, "the next agent enforces", func() (bool, string) {
		s := status(t)
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionEnforced)
		return !s.Reported.Equal(&old) && c.Status == metav1.ConditionTrue, c.Reason + ": " + c.Message
	})
	eventually(t, "the pod runs again", func() (bool, string) {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return false, err.Error()
		}
		c := pod.Status.ContainerStatuses[0]
		return c.RestartCount > 0 && c.State.Running != nil, fmt.Sprintf("%+v", c)
	})
	awaitTier(t, pod, "critical")
	onNode(t, "the tier map has what is there, and no more", func() (bool, string) {
		s, err := nodeStatus(t)
		if err != nil {
			return false, err.Error()
		}
		if s.Scheduler.EnableSeq != 1 || len(s.Exits) != 0 {
			t.Fatalf("since the node was booted: attached %d times, ended %v", s.Scheduler.EnableSeq, s.Exits)
		}
		entries, there := 0, 0
		for _, tier := range s.Tiers {
			entries += tier.Cgroups
		}
		for _, member := range s.Cgroups {
			if member.Present {
				there++
			}
		}
		return entries == there && there > 0, fmt.Sprintf("%d entries for %d cgroups", entries, there)
	})
	TestAgentEnforces(t)
}

func bootID(t *testing.T) string {
	t.Helper()
	var n corev1.Node
	if err := get(t, &n, "", nodeName); err != nil {
		t.Fatal(err)
	}
	return n.Status.NodeInfo.BootID
}
