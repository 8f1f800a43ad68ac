package overcommit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"temper.dev/temper/api/v1alpha1"
)

// Lowered pods ask for what only enforced nodes offer; others are as they were.
func TestEnforcedOnly(t *testing.T) {
	p := good()
	p.EnforcedOnly = true
	r := compiled(t, p)
	one := resource.MustParse("1")
	min := corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
		Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("900m")}}}}}
	for _, c := range []struct {
		what   string
		change func(*corev1.Pod)
		limits []corev1.LimitRange
		asks   bool
		left   string
	}{
		{"a pod that is lowered", func(*corev1.Pod) {}, nil, true, ""},
		{"one that asks for more of them", func(pod *corev1.Pod) { askFor(&pod.Spec.Containers[0].Resources, 7) }, nil, true, ""},
		{"one that is left alone", func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = nil }, nil, false, "no CPU request of it"},
		{"one made for a node", func(pod *corev1.Pod) { pod.Spec.NodeName = "n" }, nil, false, "made for one node"},
		{"one that a LimitRange would refuse", func(pod *corev1.Pod) { askFor(&pod.Spec.Containers[0].Resources, 1) }, []corev1.LimitRange{min}, false, "would refuse it"},
	} {
		t.Run(c.what, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Priority: new(int32(0)), Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: one}}}}}}
			c.change(pod)
			got, outcome := r.Admit(pod, Namespace{Name: "shop", LimitRanges: c.limits})
			if !strings.Contains(outcome.Left, c.left) || c.left == "" && outcome.Left != "" {
				t.Errorf("left: %q, want %q", outcome.Left, c.left)
			}
			own := got.Spec.Containers[0].Resources
			for name, list := range map[string]corev1.ResourceList{"requests": own.Requests, "limits": own.Limits} {
				if amount, has := list[v1alpha1.OvercommitResource]; has != c.asks || has && !amount.Equal(one) {
					t.Errorf("%s: %v, want one of %s: %t", name, list, v1alpha1.OvercommitResource, c.asks)
				}
			}
		})
	}
}

// A resize cannot have a pod ask for it: repair leaves such a pod alone, and the report says why.
func TestRepairOfEnforcedOnly(t *testing.T) {
	p := good()
	p.EnforcedOnly = true
	r := compiled(t, p)
	pod := &corev1.Pod{Spec: corev1.PodSpec{Priority: new(int32(0)), NodeName: "n", Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}}
	in := Namespace{Name: "shop"}
	if got := r.Repair(pod, in); got.Step != Done || !strings.Contains(got.Left, "make it anew") {
		t.Errorf("repair: %+v", got)
	}
	if line, _, _ := r.look(pod, in); line.State != stateMissed || !strings.Contains(line.Why, "make it anew") {
		t.Errorf("report: %+v", line)
	}
	admitted, _ := r.Admit(unbound(pod), in)
	admitted.Spec.NodeName = "n"
	if line, _, _ := r.look(admitted, in); line.State != stateLowered {
		t.Errorf("a lowered pod on its node: %+v", line)
	}
	if got := r.Repair(admitted, in); got.Step != Done || got.Left != "" {
		t.Errorf("repair of a lowered pod: %+v", got)
	}
}
