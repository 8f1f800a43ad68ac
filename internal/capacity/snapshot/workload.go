package snapshot

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is what makes a pod: a Deployment rather than the ReplicaSet between.
type Workload struct{ Namespace, Kind, Name string }

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
