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
	cores      map[string]int   // physical ones, by the node's name
	room       map[string]int64 // thousandths of CPUs for critical pods, by the node's name
	snapshot   *snapshot.Snapshot
}

// Sized is how the critical pods of a node fit into it.
type Sized struct {
	Node string
	// Cores are the physical ones; Assumed: half of the CPUs, since nobody has said how many there are.
	Cores   int
	Assumed bool
	// What critical pods want, and what they may want, in thousandths of CPUs.
	Demand, Room int64
	// Uncounted says why the node does not count for plans; "": it counts.
	Uncounted string
}

// Fits is whether the node keeps the sizing rule.
func (s Sized) Fits() bool { return s.Demand <= s.Room }

// Tiers are the tiers of a snapshot's pods that have a node, and how these nodes keep the sizing rule.
type Tiers struct {
	of    *sizing
	Nodes []Sized // by name
}

// TiersOf says of a snapshot which pods are critical, and whether they fit. An error is of a policy that is not valid.
func TiersOf(s *snapshot.Snapshot) (*Tiers, error) {
	p, err := newProblem(s, nil)
	if err != nil {
		return nil, err
	}
	t := &Tiers{of: p.sizing}
	for _, name := range p.names {
		_, known := s.Cores[name]
		t.Nodes = append(t.Nodes, Sized{Node: name, Cores: p.sizing.cores[name], Assumed: !known, Demand: p.criticalBefore[name],
			Room: p.sizing.room[name], Uncounted: p.nodes[name].uncounted})
	}
	return t, nil
}

// Of is a pod's tier, and why. One without a node is judged by the policy that is for nodes without labels.
func (t *Tiers) Of(pod *corev1.Pod) policy.Verdict { return t.of.verdict(pod, pod.Spec.NodeName) }

// Demand is what a pod adds to the critical demand on its node, in thousandths of CPUs.
func (t *Tiers) Demand(pod *corev1.Pod) float64 {
	return float64(t.of.critical(pod, pod.Spec.NodeName))
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
	z := &sizing{map[string]*policy.Policy{"": policy.Select(policies, nil)}, map[string]*policy.Namespace{}, map[string]int{}, map[string]int64{}, s}
	for _, ns := range s.Namespaces {
		z.namespaces[ns.Name] = &policy.Namespace{Name: ns.Name, Labels: ns.Labels}
	}
	for _, node := range s.Nodes {
		z.policies[node.Name] = policy.Select(policies, node.Labels)
		cores, known := s.Cores[node.Name]
		if !known {
			cores = int(node.Status.Capacity.Cpu().Value() / 2)
		}
		z.cores[node.Name] = cores
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
// measured to use, if that is known for long enough. Else it is what it requests, or what little is known of its use, if
// that is more.
func (z *sizing) demand(pod *corev1.Pod, node string) (milli int64, isCritical bool) {
	if z.verdict(pod, node).Tier != tier.Critical {
		return 0, false
	}
	key := snapshot.Key(pod)
	use := z.snapshot.Use[key]
	if use.Hours >= snapshot.EnoughHours {
		return use.CPU.MilliValue(), true
	}
	moment := z.snapshot.Moment[key]
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	return max(requests.Cpu().MilliValue(), use.CPU.MilliValue(), moment.MilliValue()), true
}

func (z *sizing) verdict(pod *corev1.Pod, node string) policy.Verdict {
	return z.policies[node].Tier(pod, z.namespaces[pod.Namespace])
}
