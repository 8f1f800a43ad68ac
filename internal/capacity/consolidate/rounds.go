package consolidate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/snapshot"
)

// execution is a plan that is being carried out. What it remembers is for its report, and for when to stop: nothing has to
// be taken back by it.
type execution struct {
	*Executor
	plan    *Plan
	outcome *Outcome
	settled map[string]bool // nodes that are emptied, released or gone
	moves   int
	// Pods that had no node before. Others that find none are the plan's doing, or might be.
	waited map[types.UID]bool
}

// errTime ends a plan, errPod the wait for one pod.
var (
	errTime = errors.New("the plan's time is over")
	errPod  = errors.New("the time for one pod is over")
)

// carryOut is done by who holds the Lease.
func (e *Executor) carryOut(ctx context.Context, p *Plan) (*Outcome, error) {
	x, err := e.begin(ctx, p)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithTimeoutCause(ctx, e.Timing.Plan, errTime)
	defer stop()
	err = x.cordonAll(running)
	if err == nil {
		err = x.rounds(running)
	}
	why := "the plan is given up"
	if running.Err() != nil {
		why = context.Cause(running).Error()
		err = fmt.Errorf("the plan was ended: %w (%w)", context.Cause(running), running.Err())
	}
	if err == nil { // no node is left that is ours and not empty
		return x.outcome, nil
	}
	if back := x.takeBack(ctx, why); back != nil {
		return x.outcome, errors.Join(err, fmt.Errorf("not all could be taken back; 'kubectl temper consolidate rollback' does it: %w", back))
	}
	return x.outcome, err
}

// begin refuses what must not be begun. Nothing is changed.
func (e *Executor) begin(ctx context.Context, p *Plan) (*execution, error) {
	e.say(Progress{}, "looking at the cluster")
	s, err := Snapshot(ctx, e.Cluster, e.Now())
	if err != nil {
		return nil, err
	}
	who, err := RemovedBy(ctx, e.Cluster, s.Nodes)
	if err != nil {
		return nil, err
	}
	if who != "" {
		return nil, fmt.Errorf("%s removes nodes of this cluster by itself, and would undo this: lower requests instead, and let it act", who)
	}
	if why := p.standsFor(s.Snapshot); why != "" {
		return nil, fmt.Errorf("plan %s is of another cluster than this is now: %s", p.Metadata.Name, why)
	}
	found, kept, err := e.confirm(ctx, s.Snapshot, p.Names())
	if err != nil {
		return nil, err
	}
	if len(kept) > 0 {
		return nil, fmt.Errorf("plan %s does not hold any more: %s", p.Metadata.Name, inWords(kept))
	}
	x := &execution{Executor: e, plan: p, moves: found.Moves(), settled: map[string]bool{}, waited: map[types.UID]bool{},
		outcome: &Outcome{Plan: p.Metadata.Name, Planned: p.Names(), Emptied: []string{}, Kept: []plan.Kept{}}}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName == "" {
			x.waited[pod.UID] = true
		}
	}
	return x, nil
}

func inWords(kept map[string]string) string {
	var words []string
	for _, node := range slices.Sorted(maps.Keys(kept)) {
		words = append(words, "node "+node+": "+kept[node])
	}
	return strings.Join(words, "; ")
}

func (x *execution) cordonAll(ctx context.Context) error {
	marker := Marker{Plan: x.plan.Metadata.Name, Owner: x.Owner, Deadline: x.Now().Add(x.Timing.Plan).UTC().Truncate(time.Second)}
	for _, node := range x.plan.Spec.Nodes {
		x.tell("cordoning node %s", node.Name)
		if err := x.cordon(ctx, node, marker); err != nil {
			return err
		}
	}
	return nil
}

// rounds go on until no node is left that is this plan's and not empty.
func (x *execution) rounds(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		open, err := x.open(ctx)
		if err != nil || len(open) == 0 {
			return err
		}
		step, err := x.next(ctx, open)
		if err != nil {
			return err
		}
		if step != nil {
			if err := x.carryOutStep(ctx, step); err != nil {
				return err
			}
		}
	}
}

// open are the nodes that are still to be emptied. Those that somebody has taken over are left to them.
func (x *execution) open(ctx context.Context) (open []string, err error) {
	var list corev1.NodeList
	if err := x.Cluster.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	now := map[string]*corev1.Node{}
	for i := range list.Items {
		now[list.Items[i].Name] = &list.Items[i]
	}
	for _, want := range x.plan.Spec.Nodes {
		node := now[want.Name]
		switch {
		case x.settled[want.Name]:
			continue
		case node == nil || node.UID != want.UID:
			x.settled[want.Name] = true // its machine was deleted, which is what the plan is for
			continue
		}
		n, err := markerOf(node)
		if err != nil {
			return nil, err
		}
		why := x.takenFrom(node, n)
		switch {
		case why == "":
			open = append(open, want.Name)
		case n == nil || n.marker.Owner != x.Owner:
			x.keep(want.Name, why)
		default:
			if err := x.giveUp(ctx, want.Name, why); err != nil {
				return nil, err
			}
		}
	}
	return open, nil
}

// next is the next step of what the planner makes of the cluster now. Nodes that it does not confirm any more are released
// first, since it has counted on their room.
func (x *execution) next(ctx context.Context, open []string) (*plan.Step, error) {
	x.tell("confirming what is left")
	s, err := Snapshot(ctx, x.Cluster, x.Now())
	if err != nil {
		return nil, err
	}
	found, kept, err := x.confirm(ctx, uncordoned(s.Snapshot, open), open)
	if err != nil {
		return nil, err
	}
	for _, node := range slices.Sorted(maps.Keys(kept)) {
		if err := x.giveUp(ctx, node, kept[node]); err != nil {
			return nil, err
		}
	}
	x.moves = x.outcome.Moved + found.Moves()
	if len(found.Steps) == 0 {
		return nil, nil
	}
	return &found.Steps[0], nil
}

// uncordoned is the snapshot as if nobody had cordoned these nodes, which is for the planner to do.
func uncordoned(s *snapshot.Snapshot, names []string) *snapshot.Snapshot {
	as := *s
	as.Nodes = slices.Clone(s.Nodes)
	for i, node := range as.Nodes {
		if !slices.Contains(names, node.Name) {
			continue
		}
		node = node.DeepCopy()
		node.Spec.Unschedulable = false
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		as.Nodes[i] = node
	}
	return &as
}

func (x *execution) carryOutStep(ctx context.Context, step *plan.Step) error {
	if len(step.Moves) == 0 {
		return x.complete(ctx, step.Node)
	}
	for _, move := range step.Moves {
		x.tell("node %s: evicting pod %s", step.Node, move.Pod)
		why, err := x.move(ctx, step.Node, move.Pod)
		if err != nil {
			return err
		}
		if why != "" {
			return x.giveUp(ctx, step.Node, why)
		}
	}
	return nil
}

// complete notes that a node is empty, once the last pod on it has ended.
func (x *execution) complete(ctx context.Context, node string) error {
	x.tell("node %s: waiting for the last pods to end", node)
	left, err := x.awaitEmpty(ctx, node)
	if err != nil || left == leftMore {
		return err
	}
	if left != "" {
		return x.giveUp(ctx, node, left)
	}
	lost, err := x.finish(ctx, node)
	if err != nil || lost != "" {
		return err // who has it now is told in the next round
	}
	x.settled[node] = true
	x.outcome.Emptied = append(x.outcome.Emptied, node)
	x.tell("node %s is empty", node)
	return nil
}

func (x *execution) giveUp(ctx context.Context, node, why string) error {
	x.tell("releasing node %s: %s", node, why)
	if _, err := x.release(ctx, node, why); err != nil {
		return err
	}
	x.keep(node, why)
	return nil
}

func (x *execution) keep(node, why string) {
	x.settled[node] = true
	x.outcome.Kept = append(x.outcome.Kept, plan.Kept{Node: node, Reasons: []string{why}})
}

// takeBack releases what is this plan's and not empty, whatever has ended it; and goes on trying for a while, since the API
// server may be away.
func (x *execution) takeBack(ctx context.Context, why string) error {
	back, stop := context.WithTimeout(context.WithoutCancel(ctx), x.Timing.Back)
	defer stop()
	var failed error
	err := wait.PollUntilContextCancel(back, x.Timing.Poll, true, func(ctx context.Context) (bool, error) {
		var released []Released
		released, failed = x.releaseAll(ctx, func(n *marked) bool { return n.marker.Owner == x.Owner && n.marker.Emptied == nil }, why)
		for _, r := range released {
			x.keep(r.Node, why)
		}
		return failed == nil, nil
	})
	if err != nil {
		return errors.Join(failed, err)
	}
	return nil
}

// tell says how far the plan has come.
func (x *execution) tell(format string, args ...any) {
	x.say(Progress{len(x.plan.Spec.Nodes), len(x.outcome.Emptied), x.moves, x.outcome.Moved, ""}, format, args...)
}
