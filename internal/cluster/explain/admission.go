package explain

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"temper.dev/temper/internal/cluster/manifest"
	"temper.dev/temper/internal/cluster/policy"
)

// admit does to a pod what the API server does as it is made, as far as tiers go. A class that no file has leaves
// the pod's priority unresolved (nil). It returns what else cannot be known from the manifests.
func (m *Manifests) admit(p *corev1.Pod) (unknown []string) {
	manifest.DefaultRequests(&p.Spec)
	if m.limited[p.Namespace] {
		unknown = append(unknown, "what the namespace's LimitRange gives it, and so its QoS class")
	}
	if p.Spec.Priority != nil {
		return unknown
	}
	class := p.Spec.PriorityClassName
	if value, ok := policy.BuiltInPriority(class); ok {
		p.Spec.Priority = &value
		return unknown
	}
	if found := m.class(class); found != nil {
		p.Spec.PriorityClassName, p.Spec.Priority = found.Name, &found.Value
		return unknown
	}
	if class == "" {
		p.Spec.Priority = new(int32)
	}
	return unknown
}

// class is the class of that name; for pods without one, the one that is for all, of several the lowest.
func (m *Manifests) class(name string) (found *schedulingv1.PriorityClass) {
	for _, c := range m.classes {
		switch {
		case name != "" && c.Name == name:
			return c
		case name == "" && c.GlobalDefault && (found == nil || c.Value < found.Value):
			found = c
		}
	}
	return found
}
