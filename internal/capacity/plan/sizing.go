package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/snapshot"
	"temper.dev/temper/internal/cluster/policy"
)

// sizing is the rule that critical pods' demand on a node fits in its physical cores but one: two threads of a core do not
// do the work of two cores, and system work needs its place.
type sizing struct {
	policies   map[string]*policy.Policy // the one for a node, by the node's name; nil: none is
	namespaces map[string]*policy.Namespace
	room       map[string]int64 // thousandths of CPUs for critical pods, by the node's name
	use        map[string]snapshot.Use
}

func newSizing(s *snapshot.Snapshot) (*sizing, error) {
	var policies []*policy.Policy
	for _, from := range s.TierPolicies {
		p, err := policy.Compile(from)
		if err != nil {
			return nil, err
		}
		policies = append(policies, p)
	}
	z := &sizing{map[string]*policy.Policy{}, map[string]*policy.Namespace{}, map[string]int64{}, s.Use}
	for _, ns := range s.Namespaces {
		z.namespaces[ns.Name] = &policy.Namespace{Name: ns.Name, Labels: ns.Labels}
	}
	for _, node := range s.Nodes {
		z.policies[node.Name] = policy.Select(policies, node.Labels)
		cores, known := s.Cores[node.Name]
		if !known {
			cores = int(node.Status.Capacity.Cpu().Value() / 2)
		}
		z.room[node.Name] = max(0, int64(cores-1)) * 1000
	}
	return z, nil
}

// critical is what a pod on a node adds to the critical demand there, in thousandths of CPUs.
func (z *sizing) critical(pod *corev1.Pod, node string) int64 {
	demand, _ := z.demand(pod, node)
	return demand
}

// demand is also whether the pod is critical on the node, which it may be with no demand at all. The demand is what it was
// measured to use, if that is known for long enough, else what it requests.
func (z *sizing) demand(pod *corev1.Pod, node string) (milli int64, isCritical bool) {
	verdict := z.policies[node].Tier(pod, z.namespaces[pod.Namespace])
	if verdict.Tier != tier.Critical {
		return 0, false
	}
	if use, ok := z.use[snapshot.Key(pod)]; ok && use.Hours >= snapshot.EnoughHours {
		return use.CPU.MilliValue(), true
	}
	return demandOf(resource.PodRequests(pod, resource.PodResourcesOptions{}))[corev1.ResourceCPU], true
}
