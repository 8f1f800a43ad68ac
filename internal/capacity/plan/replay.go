package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/internal/capacity/engine"
	"temper.dev/temper/internal/capacity/snapshot"
)

// world is a cluster on which sets of nodes are tried out, one after another. It is for one goroutine.
type world struct {
	*problem
	engine    *engine.Engine
	decisions int // pods that the scheduler was asked to place
	// Of the pods that wait for a node, those that find one while no node is emptied.
	placeable map[*corev1.Pod]bool
	trial
}

// trial is one try.
type trial struct {
	emptying map[string]bool   // nodes that are cordoned and to be emptied
	dropped  map[string]string // of those: given up, and why
	done     []landing
	at       map[*mover]string // where pods are that were evicted; "": on no node
	critical map[string]int64  // critical demand, by node, in thousandths of CPUs
	// Pods that stay pending. What is done to the others must not change that.
	pending []*corev1.Pod
}

// landing is a pod that was evicted, and where it is now.
type landing struct {
	*mover
	to string
}

func newWorld(ctx context.Context, p *problem) (*world, error) {
	e, err := engine.New(ctx, p.snapshot)
	if err != nil {
		return nil, err
	}
	w := &world{problem: p, engine: e, placeable: map[*corev1.Pod]bool{}}
	w.reset(0)
	if err := w.settle(); err != nil {
		return nil, err
	}
	for _, pod := range p.waiting {
		w.placeable[pod] = !slices.Contains(w.pending, pod)
	}
	return w, nil
}

// reset takes back all that was tried.
func (w *world) reset(seed uint64) {
	w.engine.Reset(seed)
	w.trial = trial{emptying: map[string]bool{}, dropped: map[string]string{}, at: map[*mover]string{}, critical: maps.Clone(w.criticalBefore)}
}

// try cordons the nodes and moves their pods away in the given order. Of a node that turns out not to be emptied, all pods
// go back, its cordon ends, and the others go on: what is in force at the end holds, but not all of it may have come to
// pass on the same way. So a set is confirmed only when nothing of it was dropped.
func (w *world) try(ctx context.Context, set map[string]bool, order []*mover, seed uint64) (trial, error) {
	w.reset(seed)
	for _, name := range w.names {
		if set[name] {
			w.emptying[name] = true
			w.engine.Cordon(name, true)
		}
	}
	if err := w.settle(); err != nil {
		return trial{}, err
	}
	for _, m := range order {
		if err := ctx.Err(); err != nil {
			return trial{}, err
		}
		if !w.emptying[m.from] {
			continue
		}
		why, err := w.move(m)
		if err != nil {
			return trial{}, err
		}
		if why == "" {
			continue
		}
		if err := w.giveUp(m.from, why); err != nil {
			return trial{}, err
		}
	}
	return w.trial, nil
}

// empty says what goes wrong when one more node is emptied; "": nothing. Afterwards all is as before.
func (w *world) empty(name string) (why string, err error) {
	w.emptying[name] = true
	w.engine.Cordon(name, true)
	for _, m := range w.nodes[name].movers {
		if why, err = w.move(m); why != "" || err != nil {
			break
		}
	}
	return why, errors.Join(err, w.giveUp(name, why))
}

// settle lets pods that wait for a node have it, which the scheduler would do before anybody else acts. A node that one of
// them needs is not emptied. Those that find none stay pending.
func (w *world) settle() error {
	for _, pod := range w.waiting {
		node, err := w.place(pod)
		if err == nil && node == "" && w.placeable[pod] {
			node, err = w.claim(pod)
		}
		switch {
		case err != nil:
			return err
		case node == "":
			w.pending = append(w.pending, pod)
			continue
		}
		if err := w.engine.Bind(pod, node); err != nil {
			return err
		}
		w.critical[node] += w.sizing.critical(pod, node)
	}
	return nil
}

// claim is the node that a waiting pod has if none is cordoned for the trial, which then is not emptied. Where a cordon alone
// keeps it from another node, as by spread, no node is.
func (w *world) claim(pod *corev1.Pod) (string, error) {
	emptying := slices.Sorted(maps.Keys(w.emptying))
	for _, name := range emptying {
		w.engine.Cordon(name, false)
	}
	node, err := w.place(pod)
	if err != nil {
		return "", err
	}
	why := fmt.Sprintf("pod %s waits for a node, and would go to node %s", snapshot.Key(pod), node)
	needed := map[string]bool{node: true}
	if node != "" && !w.emptying[node] {
		needed = maps.Clone(w.emptying)
	}
	for _, name := range emptying {
		if !needed[name] {
			w.engine.Cordon(name, true)
		} else if err := w.giveUp(name, why); err != nil {
			return "", err
		}
	}
	return node, nil
}

// place is the node that the scheduler chooses, "" if none fits.
func (w *world) place(pod *corev1.Pod) (string, error) {
	node, _, err := w.placeOr(pod)
	return node, err
}

// placeOr says why, too.
func (w *world) placeOr(pod *corev1.Pod) (node, why string, err error) {
	w.decisions++
	node, err = w.engine.Schedule(pod)
	if unfit := (*engine.Unschedulable)(nil); errors.As(err, &unfit) {
		return "", unfit.Error(), nil
	}
	return node, "", err
}

// move evicts a pod and lets the scheduler place it anew. Where that must not be, it says why; the pod is then on no node.
func (w *world) move(m *mover) (why string, err error) {
	if err := w.engine.Remove(m.pod, m.from); err != nil {
		return "", err
	}
	w.at[m] = ""
	w.critical[m.from] -= w.sizing.critical(m.pod, m.from)
	if why, err = w.letsIn(m); why != "" || err != nil {
		return why, err
	}
	name := snapshot.Key(m.pod)
	to, why, err := w.placeOr(m.anew)
	switch {
	case err != nil:
		return "", err
	case why != "":
		return fmt.Sprintf("pod %s fits nowhere else: %s", name, why), nil
	case w.emptying[to]:
		return fmt.Sprintf("pod %s tolerates the cordon, and would go to node %s, which is to be emptied, too", name, to), nil
	}
	if why := w.unfitFor(m.anew, to); why != "" {
		return why, nil
	}
	if err := w.engine.Bind(m.anew, to); err != nil {
		return "", err
	}
	w.at[m] = to
	w.critical[to] += w.sizing.critical(m.anew, to)
	w.done = append(w.done, landing{m, to})
	return w.letsIn(m)
}

// unfitFor says why a node on which the scheduler puts a pod is none for it, since the pod is critical; "": it is one.
func (w *world) unfitFor(pod *corev1.Pod, node string) string {
	demand, isCritical := w.sizing.demand(pod, node)
	name := snapshot.Key(pod)
	switch {
	case !isCritical:
		return ""
	case w.nodes[node].uncounted != "":
		return fmt.Sprintf("critical pod %s would go to node %s, where it is not protected: %s", name, node, w.nodes[node].uncounted)
	case w.critical[node]+demand > w.sizing.room[node]:
		return fmt.Sprintf("critical pod %s would go to node %s, where critical pods then want %.4g CPUs, and its physical cores but one are %.4g",
			name, node, float64(w.critical[node]+demand)/1000, float64(w.sizing.room[node])/1000)
	}
	return ""
}

// letsIn says which pending pod would take the place of one that was just evicted or placed; "": none. What it would take
// then, the plan counts on. Rooms of nodes that stay only shrink, so only who is held up by other pods, or may go to a
// cordoned node, is worth asking.
func (w *world) letsIn(m *mover) (string, error) {
	for _, pod := range w.pending {
		if !constrained(pod) && !antiAffine(m.pod) {
			continue
		}
		node, err := w.place(pod)
		if err != nil {
			return "", err
		}
		if node != "" {
			return fmt.Sprintf("moving pod %s would let pod %s in, which is pending: it would go to node %s", snapshot.Key(m.pod), snapshot.Key(pod), node), nil
		}
	}
	return "", nil
}

// constrained is whether where other pods are decides where this one can go, or a cordon does not stop it.
func constrained(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) || len(pod.Spec.TopologySpreadConstraints) > 0 ||
		slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == corev1.TaintNodeUnschedulable || t.Key == "" && t.Operator == corev1.TolerationOpExists
		})
}

func antiAffine(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// giveUp puts a node's pods back, and ends its cordon.
func (w *world) giveUp(node, why string) error {
	w.dropped[node] = why
	delete(w.emptying, node)
	w.done = slices.DeleteFunc(w.done, func(l landing) bool { return l.from == node })
	for _, m := range w.nodes[node].movers {
		to, evicted := w.at[m]
		if !evicted {
			continue
		}
		if to != "" {
			if err := w.engine.Remove(m.anew, to); err != nil {
				return err
			}
			w.critical[to] -= w.sizing.critical(m.anew, to)
		}
		if err := w.engine.Bind(m.pod, node); err != nil {
			return err
		}
		w.critical[node] += w.sizing.critical(m.pod, node)
		delete(w.at, m)
	}
	w.engine.Cordon(node, false)
	return nil
}
