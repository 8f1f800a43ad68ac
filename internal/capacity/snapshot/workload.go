package snapshot

import (
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is what makes a pod: a Deployment rather than the ReplicaSet between.
type Workload struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
}

// Workloads says of each pod of the snapshot what makes it. A pod that nothing makes is its own.
func (s *Snapshot) Workloads() func(*corev1.Pod) Workload {
	above := map[Workload]Workload{}
	for _, set := range s.ReplicaSets {
		if owner := metav1.GetControllerOf(set); owner != nil {
			above[Workload{set.Namespace, "ReplicaSet", set.Name}] = Workload{set.Namespace, owner.Kind, owner.Name}
		}
	}
	return func(pod *corev1.Pod) Workload {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			return Workload{pod.Namespace, "Pod", pod.Name}
		}
		direct := Workload{pod.Namespace, owner.Kind, owner.Name}
		if owner, ok := above[direct]; ok {
			return owner
		}
		// The ReplicaSet is not in the snapshot. A Deployment names it after itself and this label.
		if hash := pod.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" && strings.HasSuffix(owner.Name, "-"+hash) {
			return Workload{pod.Namespace, "Deployment", strings.TrimSuffix(owner.Name, "-"+hash)}
		}
		return direct
	}
}

// ScaledByCPU is what an autoscaler scales by the share of CPU requests that is used; ok is false for one that scales by
// something else.
func ScaledByCPU(h *autoscalingv2.HorizontalPodAutoscaler) (target Workload, ok bool) {
	// One that names no metric, as a manifest may, gets this one from the API server.
	if len(h.Spec.Metrics) > 0 && !slices.ContainsFunc(h.Spec.Metrics, isShareOfCPURequests) {
		return Workload{}, false
	}
	return Workload{h.Namespace, h.Spec.ScaleTargetRef.Kind, h.Spec.ScaleTargetRef.Name}, true
}

func isShareOfCPURequests(m autoscalingv2.MetricSpec) bool {
	return m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil ||
		m.ContainerResource != nil && m.ContainerResource.Name == corev1.ResourceCPU && m.ContainerResource.Target.AverageUtilization != nil
}
