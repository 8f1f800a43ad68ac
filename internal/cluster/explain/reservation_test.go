package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/fleet"
)

func TestReservationOfANode(t *testing.T) {
	report := func(rung string, reserved *resource.Quantity) fleet.Node {
		enforced := metav1.Condition{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue}
		if rung != "scx" {
			enforced.Status, enforced.Reason = metav1.ConditionFalse, "Failed"
		}
		return fleet.Node{TemperNodeStatus: v1alpha1.TemperNodeStatus{Rung: rung, Reservation: reserved, Conditions: []metav1.Condition{enforced}}}
	}
	reports := map[string]fleet.Node{"some": report("scx", new(resource.MustParse("2500m"))), "none": report("scx", new(resource.MustParse("0"))),
		"left": report("cpu.idle", nil)}
	for _, c := range []struct{ node, request, want string }{
		{"some", "500m", "requests 500m; critical work on its node comes first up to 2.5 CPUs"},
		{"some", "", "requests no CPU, which adds nothing to its node's reservation; critical work on its node comes first up to 2.5 CPUs"},
		{"none", "", "nothing is reserved on its node"},
		{"left", "1", "requests 1; no reservation is known to be in force"},
		{"silent", "1", "requests 1; no reservation is known to be in force"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: c.node, Containers: []corev1.Container{{}}}}
		if c.request != "" {
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(c.request)}
		}
		if got := reservation(pod, tier.Critical, reports); !strings.Contains(got, c.want) {
			t.Errorf("on %s, of %q: %q, not %q", c.node, c.request, got, c.want)
		}
		if got := reservation(pod, tier.Standard, reports); got != "" {
			t.Errorf("a standard pod has %q", got)
		}
	}
}
