package explain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/fleet"
)

// reservation says of a critical pod what it adds to its node's reservation, and how large that is, by its report; "" of others.
func reservation(pod *corev1.Pod, t tier.Tier, reports map[string]fleet.Node) string {
	if t != tier.Critical {
		return ""
	}
	adds := "requests no CPU, which adds nothing to its node's reservation"
	if cpu := resource.PodRequests(pod, resource.PodResourcesOptions{})[corev1.ResourceCPU]; !cpu.IsZero() {
		adds = "requests " + cpu.String()
	}
	node := reports[pod.Spec.NodeName]
	switch r := node.Reservation; {
	case node.Enforced() != "yes" || r == nil:
		return adds + "; no reservation is known to be in force on its node"
	case r.IsZero():
		return adds + "; nothing is reserved on its node, where critical work shares with standard by weight"
	default:
		return fmt.Sprintf("%s; critical work on its node comes first up to %g CPUs, and beyond shares with standard by weight", adds, r.AsApproximateFloat64())
	}
}
