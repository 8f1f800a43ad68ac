// Package plan finds nodes that a cluster could do without: a snapshot goes in, a plan comes out. It talks to nobody, reads
// no clock, and gives the same plan for the same snapshot, options and seeds, unless its context ends before it does.
//
// A plan empties a set of nodes. All of them are cordoned first; then their pods are evicted one after another, and each is
// made anew by its controller and placed by the scheduler before the next is evicted. Whether that works is not computed but
// tried: every plan is replayed with kube-scheduler's own plugins (package engine), with several seeds for what the
// scheduler leaves to chance. A node is given up where one of its pods stays pending, would come back to a node that is to
// be emptied, lets a pod in that was pending, or, being critical, would land where Temper does not enforce or break the
// sizing rule. No plan is returned that a replay has not confirmed with each seed.
//
// A node counts only while its TemperNode says Enforced: others are not emptied, and are no place for critical pods. The
// scheduler puts other pods there as it always did, by what they request, and the replay shows it.
//
// Where to look: movable.go says what must not be moved, replay.go tries a set of nodes, search.go chooses sets, bound.go
// says how good a plan can be, sizing.go which pods are critical and whether they fit, simulate.go carries a plan out.
package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/internal/capacity/snapshot"
)

// Plan is which nodes can be emptied, how, and what keeps the others.
type Plan struct {
	// Steps are in the order in which they are to be carried out, after the nodes of all of them were cordoned.
	Steps []Step `json:"steps"`
	// Kept are the nodes that are not emptied, by name, each with what keeps it.
	Kept []Kept `json:"kept,omitempty"`
	// SavedMilliCPU is the capacity of the emptied nodes, in thousandths of a vCPU.
	SavedMilliCPU int64 `json:"savedMilliCPU"`
	// NodesBefore and NodesAfter count all nodes of the snapshot, and those that the plan keeps.
	NodesBefore int `json:"nodesBefore"`
	NodesAfter  int `json:"nodesAfter"`
	// AtLeast is a number of nodes that no plan can go below: NodesAfter is at most NodesAfter/AtLeast times the best.
	AtLeast int `json:"atLeast"`
	// Seeds are those with which replays have confirmed the plan.
	Seeds []uint64 `json:"seeds"`
	// Decisions is how many pods the search has had the scheduler place.
	Decisions int `json:"decisions"`
}

// Step empties a node, or a part of it: where the largest pods of all nodes go first, a node has several steps.
type Step struct {
	Node  string `json:"node"`
	Moves []Move `json:"moves,omitempty"` // in order; none: the node is empty already
}

// Move is one eviction.
type Move struct {
	Pod string `json:"pod"` // namespace/name
	// Expected is the node that the first seed's replay has put the pod on. Others have put it elsewhere: all that is sure
	// is that it finds a node.
	Expected string `json:"expected"`
}

// Kept is a node that is not emptied.
type Kept struct {
	Node    string   `json:"node"`
	Reasons []string `json:"reasons"`
}

// Options are how a plan is made. The zero value is what a caller wants that knows nothing better.
type Options struct {
	// Admit returns a pod as the API server would admit it now, when its controller makes it anew: template, defaults,
	// LimitRanges and mutating webhooks may have changed since the pod was made. The pod that it is given has no node and no
	// status, and is its own to change. nil: as it is. An error keeps the pod where it is, with the error as the reason.
	Admit func(*corev1.Pod) (*corev1.Pod, error)
	// Replays that must confirm a plan, each with another seed. 0: 20 in clusters of up to 1,000 pods, and fewer in larger
	// ones, but at least 2.
	Replays int
	// Seed is the first of the seeds.
	Seed uint64
	// Effort is the number of scheduling decisions after which no further improvement is begun. 0: 200 a pod, but at most
	// 50,000. In a cluster of 1,000 nodes a decision takes about 3 ms of a CPU; who has less time ends the context.
	Effort int
	// Nodes are the only ones that may be emptied. nil: any may.
	Nodes []string
	// Improved is called with each confirmed plan that is better than the one before; the first moves nothing. It must not
	// keep the search waiting.
	Improved func(*Plan)
}

// Nodes are the nodes that the plan empties, sorted.
func (p *Plan) Nodes() []string {
	nodes := map[string]bool{}
	for _, step := range p.Steps {
		nodes[step.Node] = true
	}
	return slices.Sorted(maps.Keys(nodes))
}

// Moves is the number of pods that the plan evicts.
func (p *Plan) Moves() int {
	n := 0
	for _, step := range p.Steps {
		n += len(step.Moves)
	}
	return n
}

// Make finds a plan. Where ctx ends first, it is the best plan that was confirmed until then; with none, ctx's error.
// Other errors are of the snapshot, and say what in it contradicts itself.
func Make(ctx context.Context, s *snapshot.Snapshot, o Options) (*Plan, error) {
	if o.Replays <= 0 {
		o.Replays = min(20, max(2, 20_000/max(1, len(s.Pods))))
	}
	if o.Effort <= 0 {
		o.Effort = min(50_000, 200*len(s.Pods))
	}
	task, err := newProblem(s, o.Admit)
	if err != nil {
		return nil, err
	}
	if o.Nodes != nil {
		task.only(o.Nodes)
	}
	running, stop := context.WithCancel(ctx) // engines have goroutines
	defer stop()
	search, err := newSearch(running, task, o)
	if err != nil {
		return nil, err
	}
	if err := search.run(running); err != nil && (search.best == nil || ctx.Err() == nil) {
		return nil, fmt.Errorf("no plan: %w", err)
	}
	return search.plan(search.best), nil
}
