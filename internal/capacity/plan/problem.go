package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/snapshot"
)

// problem is a snapshot as the search sees it. Nothing of it changes while a plan is made.
type problem struct {
	snapshot *snapshot.Snapshot
	nodes    map[string]*machine
	names    []string // of nodes, sorted
	// Pods that wait for a node, in the order of the scheduler's queue.
	waiting []*corev1.Pod
	sizing  *sizing
	// The critical demand on each node before anything is moved, in thousandths of CPUs.
	criticalBefore map[string]int64
}

// machine is a node of the problem.
type machine struct {
	*corev1.Node
	// Why nobody may count on it; "": it counts.
	uncounted string
	// What keeps it, whatever the others do; none: it is a candidate.
	blocks []string
	// The pods to be moved away, the largest first. They are known of candidates only.
	movers []*mover
	// The requests of those, and the room that they would have if the node held nothing else that can be moved.
	moved, room demand
}

// mover is a pod that would be evicted, and made anew.
type mover struct {
	pod, anew *corev1.Pod
	from      string
	size      float64 // its largest share of an average node's resources
}

func newProblem(s *snapshot.Snapshot, admit func(*corev1.Pod) (*corev1.Pod, error)) (*problem, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	p := &problem{snapshot: s, nodes: map[string]*machine{}, criticalBefore: map[string]int64{}}
	p.addNodes()
	budgets, err := newBudgets(s)
	if err != nil {
		return nil, err
	}
	if p.sizing, err = newSizing(s); err != nil {
		return nil, err
	}
	average := averageRoom(s.Nodes)
	again := renewal(s, admit)
	for _, pod := range s.Pods {
		switch {
		case snapshot.Ended(pod):
		case pod.Spec.NodeName == "":
			if schedulable(pod) {
				p.waiting = append(p.waiting, pod)
			}
		default:
			p.criticalBefore[pod.Spec.NodeName] += p.sizing.critical(pod, pod.Spec.NodeName)
			p.nodes[pod.Spec.NodeName].add(pod, budgets, again, average)
		}
	}
	slices.SortStableFunc(p.waiting, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(snapshot.Key(a), snapshot.Key(b)))
	})
	for _, m := range p.nodes {
		slices.SortFunc(m.movers, largestFirst)
	}
	return p, nil
}

func (p *problem) addNodes() {
	reports := map[string]*v1alpha1.TemperNode{}
	for _, report := range p.snapshot.TemperNodes {
		reports[report.Name] = report
	}
	for _, node := range p.snapshot.Nodes {
		m := &machine{Node: node, uncounted: enforced(reports[node.Name]), room: demandOf(node.Status.Allocatable)}
		if m.blocks = nodeBlocks(node); m.uncounted != "" {
			m.blocks = append(m.blocks, m.uncounted)
		}
		p.nodes[node.Name] = m
		p.names = append(p.names, node.Name)
	}
	slices.Sort(p.names)
}

// only keeps all nodes but these.
func (p *problem) only(names []string) {
	for name, m := range p.nodes {
		if !slices.Contains(names, name) {
			m.blocks = append(m.blocks, "it is none of those that may be emptied")
		}
	}
}

// schedulable is whether the default scheduler is trying to place a pod.
func schedulable(pod *corev1.Pod) bool {
	s := pod.Spec.SchedulerName
	return pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && (s == "" || s == corev1.DefaultSchedulerName)
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// add notes what a pod means for its node: it stays and takes room, it can be moved, or it keeps the node.
func (m *machine) add(pod *corev1.Pod, budgets *budgets, again func(*corev1.Pod) (*corev1.Pod, error), average demand) {
	requests := demandOf(resource.PodRequests(pod, resource.PodResourcesOptions{}))
	requests[corev1.ResourcePods] = 1
	if leaves(pod) {
		m.room.add(requests, -1)
		return
	}
	why := podBlocks(pod, budgets)
	anew, err := again(pod)
	switch {
	case why != "":
	case err != nil:
		why = "it would not be admitted anew: " + err.Error()
	default:
		requests = demandOf(resource.PodRequests(anew, resource.PodResourcesOptions{}))
		requests[corev1.ResourcePods] = 1
		m.movers = append(m.movers, &mover{pod, anew, pod.Spec.NodeName, requests.share(average)})
	}
	if why != "" {
		m.blocks = append(m.blocks, fmt.Sprintf("pod %s: %s", snapshot.Key(pod), why))
	}
	m.moved.add(requests, 1)
}

// renewal is how a pod's controller would make it anew: without node and status, with what its class's priority is now, and
// as the API server would admit it.
func renewal(s *snapshot.Snapshot, admit func(*corev1.Pod) (*corev1.Pod, error)) func(*corev1.Pod) (*corev1.Pod, error) {
	classes := map[string]int32{}
	for _, c := range s.PriorityClasses {
		classes[c.Name] = c.Value
	}
	return func(pod *corev1.Pod) (*corev1.Pod, error) {
		anew := pod.DeepCopy()
		anew.Spec.NodeName, anew.Status, anew.ResourceVersion = "", corev1.PodStatus{Phase: corev1.PodPending}, ""
		if value, ok := classes[anew.Spec.PriorityClassName]; ok {
			anew.Spec.Priority = &value
		}
		if admit == nil {
			return anew, nil
		}
		return admit(anew)
	}
}

func largestFirst(a, b *mover) int {
	return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(snapshot.Key(a.pod), snapshot.Key(b.pod)))
}
