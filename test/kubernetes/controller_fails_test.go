//go:build kubernetes

package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
)

// What cannot be looked at, or written, is told, and nothing is lowered meanwhile.
func TestControllerSaysWhatItCannotDo(t *testing.T) {
	c := newControlled(t, 1)
	c.lowering(nil)
	failed := func(what, words string) {
		t.Helper()
		eventually(t, what+": the policy says so", func() bool {
			is := c.condition(v1alpha1.ConditionReady)
			return is != nil && is.Status == metav1.ConditionFalse && is.Reason == "Failed" && strings.Contains(is.Message, words)
		})
		c.awaitAsks(full)
	}
	recovers := func(what string) {
		t.Helper()
		eventually(t, what+": nodes are calm again", func() bool {
			c.report(true, 1, 0)
			is := c.condition(v1alpha1.ConditionGuarded)
			return is != nil && is.Status == metav1.ConditionFalse
		})
		c.awaitAsks(half)
	}
	selects := func(selector string) {
		t.Helper()
		p := &v1alpha1.CapacityPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.CapacityPolicyName}}
		if err := cluster.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"nodeSelector":{"matchLabels":`+selector+`}}}`))); err != nil {
			t.Fatal(err)
		}
	}
	selects(`{"pool":"batch/spot"}`)
	failed("a label that is none", "batch/spot")
	eventually(t, "no node offers it", func() bool {
		var is corev1.Node
		if err := c.cluster.Get(t.Context(), client.ObjectKeyFromObject(c.nodes[0]), &is); err != nil {
			t.Fatal(err)
		}
		_, offered := is.Status.Capacity[v1alpha1.OvercommitResource]
		return !offered
	})
	selects(`null`)
	recovers("without it")

	// More autoscalers than the policies' annotation has room for.
	for i := range 1000 {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: fmt.Sprintf("h-%d", i)},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3,
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprintf("w%03d%s", i, strings.Repeat("x", 240))}}}
		if err := c.cluster.Create(t.Context(), hpa); err != nil {
			t.Fatal(err)
		}
	}
	failed("too many autoscalers", "Too long")
	if err := c.cluster.DeleteAllOf(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{}, client.InNamespace(c.namespace)); err != nil {
		t.Fatal(err)
	}
	recovers("without them")
}
