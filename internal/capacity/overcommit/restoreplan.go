package overcommit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/capacity/snapshot"
)

// RestorePlan says what it takes to give pods back what they asked for.
type RestorePlan struct {
	Nodes []NodePlan `json:"nodes"`
	// Pods that would be restored, and the CPUs that would be missing.
	Pods        int     `json:"pods"`
	MissingCPUs float64 `json:"missingCPUs"`
}

// NodePlan is what becomes of a node, and in which order. A node without a name stands for pods that are on none.
type NodePlan struct {
	Name            string   `json:"name"`
	AllocatableCPUs float64  `json:"allocatableCPUs"`
	RequestedCPUs   float64  `json:"requestedCPUs"`
	AfterCPUs       float64  `json:"afterCPUs"`
	MissingCPUs     float64  `json:"missingCPUs"`
	Fit             []string `json:"fit"`
	WouldNotFit     []string `json:"wouldNotFit"`
	// LeftAlone are pods that cannot be restored, room or not.
	LeftAlone []LeftPod `json:"leftAlone,omitempty"`
}

// LeftPod is one that is left alone, and why.
type LeftPod struct {
	Pod string `json:"pod"`
	Why string `json:"why"`
}

// PlanRestore plans for the nodes, with all pods that are on them. Pods of namespaces that are not given stay as they are.
func (r *Rules) PlanRestore(nodes []corev1.Node, pods []corev1.Pod, namespaces map[string]Namespace) RestorePlan {
	on := map[string][]*corev1.Pod{}
	for i := range pods {
		on[pods[i].Spec.NodeName] = append(on[pods[i].Spec.NodeName], &pods[i])
	}
	allocatable := map[string]int64{}
	for _, node := range nodes {
		allocatable[node.Name] = node.Status.Allocatable.Cpu().MilliValue()
	}
	plan := RestorePlan{Nodes: []NodePlan{}}
	var total int64
	for name, pods := range on { // a node that is gone has no CPU
		n, missing := r.planNode(name, allocatable[name], pods, namespaces)
		if len(n.Fit)+len(n.WouldNotFit)+len(n.LeftAlone) > 0 {
			plan.Nodes = append(plan.Nodes, n)
			plan.Pods += len(n.Fit) + len(n.WouldNotFit)
			total += missing
		}
	}
	plan.MissingCPUs = cpus(total)
	slices.SortFunc(plan.Nodes, func(a, b NodePlan) int { return cmp.Compare(a.Name, b.Name) })
	return plan
}

// planNode has those fit first that are urgent, and of these those that take least, so that most do. A pod's turn comes once
// the ones before it have what they asked for: the node is never above its allocatable.
func (r *Rules) planNode(name string, allocatable int64, pods []*corev1.Pod, namespaces map[string]Namespace) (n NodePlan, missing int64) {
	type due struct {
		pod  *corev1.Pod
		more int64
	}
	var dues []due
	var requested, after int64
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		now := scheduled(pod)
		requested += now
		in, takesPart := namespaces[pod.Namespace]
		if !takesPart {
			continue
		}
		switch change := r.Restore(pod, in); {
		case change.Left != "":
			n.LeftAlone = append(n.LeftAlone, LeftPod{snapshot.Key(pod), change.Left})
		case change.Step == Resize:
			more := scheduled(change.Pod) - now
			dues = append(dues, due{pod, more})
			after += more
		case change.Step == Note:
			dues = append(dues, due{pod, 0})
		}
	}
	slices.SortFunc(n.LeftAlone, func(a, b LeftPod) int { return cmp.Compare(a.Pod, b.Pod) })
	after += requested
	slices.SortFunc(dues, func(a, b due) int {
		return cmp.Or(-cmp.Compare(priority(a.pod), priority(b.pod)), cmp.Compare(a.more, b.more), cmp.Compare(snapshot.Key(a.pod), snapshot.Key(b.pod)))
	})
	n.Name, n.AllocatableCPUs, n.RequestedCPUs, n.AfterCPUs = name, cpus(allocatable), cpus(requested), cpus(after)
	n.Fit, n.WouldNotFit = []string{}, []string{}
	filled := requested
	for _, d := range dues {
		if name == "" || d.more <= 0 || filled+d.more <= allocatable {
			filled += d.more
			n.Fit = append(n.Fit, snapshot.Key(d.pod))
		} else {
			n.WouldNotFit = append(n.WouldNotFit, snapshot.Key(d.pod))
		}
	}
	if len(n.WouldNotFit) > 0 {
		missing = after - allocatable
	}
	n.MissingCPUs = cpus(missing)
	return n, missing
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// Write prints the plan as a table.
func (p RestorePlan) Write(w io.Writer) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "NODE\tALLOCATABLE CPUS\tREQUESTED\tAFTER\tMISSING\tPODS\tWOULD NOT FIT")
	for _, n := range p.Nodes {
		fmt.Fprintf(out, "%s\t%g\t%g\t%g\t%g\t%d\t%d\n", cmp.Or(n.Name, "(on none)"), n.AllocatableCPUs, n.RequestedCPUs, n.AfterCPUs, n.MissingCPUs,
			len(n.Fit)+len(n.WouldNotFit), len(n.WouldNotFit))
	}
	out.Flush()
	for _, n := range p.Nodes {
		for _, name := range n.WouldNotFit {
			fmt.Fprintf(w, "would not fit on %s: %s\n", n.Name, name)
		}
		for _, left := range n.LeftAlone {
			fmt.Fprintf(w, "left alone: %s: %s\n", left.Pod, host.Printable(left.Why))
		}
	}
	fmt.Fprintf(w, "%d pods to be restored; %g CPUs are missing.\n", p.Pods, p.MissingCPUs)
}
