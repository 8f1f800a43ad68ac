package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"temper.dev/temper/internal/capacity/engine"
	"temper.dev/temper/internal/capacity/snapshot"
)

// Outcome is what became of a plan that was carried out.
type Outcome struct {
	// After is the cluster afterwards: the plan's nodes are cordoned, its pods are where the scheduler has put them.
	After *snapshot.Snapshot
	// Emptied are the plan's nodes that hold nothing any more but what belongs to them, sorted.
	Emptied []string
	// Pending are the pods without a node, as namespace/name, sorted.
	Pending []string
	// Refused are evictions that a PodDisruptionBudget did not allow at that moment, as namespace/name. Those pods stay.
	Refused []string
}

// simulator carries a plan out. It shares nothing with the replay of the search but the engine: what the search leaves out
// to be fast (it asks only pods that are held up by others again), the simulator does in full.
type simulator struct {
	engine  *engine.Engine
	again   func(*corev1.Pod) (*corev1.Pod, error)
	budgets *budgets
	healthy map[*policyv1.PodDisruptionBudget]int32
	pods    map[string]*corev1.Pod // by namespace/name, as they are now
	at      map[string]string      // their nodes; "": none
	order   []string               // of pods without a node: the scheduler's queue
	refused []string
}

// Simulate carries a plan out on the snapshot that it was made of, as the API server, controllers and scheduler would. It
// is for tests, and for whoever wants to see what a plan leads to; seeds other than the plan's may lead elsewhere. Errors
// are of a plan that is not of this snapshot.
func Simulate(ctx context.Context, s *snapshot.Snapshot, p *Plan, o Options, seed uint64) (*Outcome, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	m, err := newSimulator(running, s, o, seed)
	if err != nil {
		return nil, err
	}
	for _, node := range p.Nodes() {
		m.engine.Cordon(node, true)
	}
	if err := m.schedule(); err != nil {
		return nil, err
	}
	for _, step := range p.Steps {
		for _, move := range step.Moves {
			if err := m.evict(step.Node, move.Pod); err != nil {
				return nil, err
			}
		}
	}
	return m.outcome(s, p), nil
}

func newSimulator(ctx context.Context, s *snapshot.Snapshot, o Options, seed uint64) (*simulator, error) {
	e, err := engine.New(ctx, s)
	if err != nil {
		return nil, err
	}
	e.Reset(seed)
	b, err := newBudgets(s)
	if err != nil {
		return nil, err
	}
	m := &simulator{
		engine: e, again: renewal(s, o.Admit), budgets: b, healthy: map[*policyv1.PodDisruptionBudget]int32{},
		pods: map[string]*corev1.Pod{}, at: map[string]string{},
	}
	for _, p := range s.PodDisruptionBudgets {
		m.healthy[p] = p.Status.CurrentHealthy
	}
	for _, pod := range s.Pods {
		if snapshot.Ended(pod) {
			continue
		}
		key := snapshot.Key(pod)
		m.pods[key], m.at[key] = pod, pod.Spec.NodeName
		if pod.Spec.NodeName == "" {
			m.order = append(m.order, key)
		}
	}
	return m, nil
}

// schedule has the scheduler try all pods without a node, those of the highest priority first, until none finds one.
func (m *simulator) schedule() error {
	slices.SortStableFunc(m.order, func(a, b string) int { return cmp.Compare(priority(m.pods[b]), priority(m.pods[a])) })
	for i := 0; i < len(m.order); i++ {
		key := m.order[i]
		pod := m.pods[key]
		if !schedulable(pod) {
			continue
		}
		node, err := m.engine.Schedule(pod)
		if unfit := (*engine.Unschedulable)(nil); errors.As(err, &unfit) {
			continue
		}
		if err != nil {
			return err
		}
		if err := m.engine.Bind(pod, node); err != nil {
			return err
		}
		m.at[key] = node
		for _, p := range m.budgets.over(pod) {
			m.healthy[p]++
		}
		m.order = slices.Delete(m.order, i, i+1)
		i = -1 // others may find a place now, beside this one
	}
	return nil
}

// evict does what the eviction API does, and then what controller and scheduler do.
func (m *simulator) evict(node, key string) error {
	pod, ok := m.pods[key]
	if !ok || m.at[key] != node {
		return fmt.Errorf("the plan moves pod %s from node %s, where it is not: the plan is of another snapshot", key, node)
	}
	over := m.budgets.over(pod)
	for _, p := range over {
		if len(over) > 1 || m.healthy[p]-1 < p.Status.DesiredHealthy {
			m.refused = append(m.refused, key)
			return nil
		}
	}
	if err := m.engine.Remove(pod, node); err != nil {
		return err
	}
	for _, p := range over {
		m.healthy[p]--
	}
	anew, err := m.again(pod)
	if err != nil {
		return fmt.Errorf("pod %s is not admitted anew: %w", key, err)
	}
	m.pods[key], m.at[key] = anew, ""
	m.order = append(m.order, key)
	return m.schedule()
}

func (m *simulator) outcome(s *snapshot.Snapshot, p *Plan) *Outcome {
	after := *s
	after.Nodes, after.Pods = slices.Clone(s.Nodes), nil
	o := &Outcome{After: &after, Refused: m.refused}
	left := map[string]bool{}
	for _, pod := range s.Pods {
		if snapshot.Ended(pod) {
			after.Pods = append(after.Pods, pod)
			continue
		}
		key := snapshot.Key(pod)
		node := m.at[key]
		if node == "" {
			o.Pending = append(o.Pending, key)
		} else if !leaves(pod) {
			left[node] = true
		}
		after.Pods = append(after.Pods, landed(pod, m.pods[key], node))
	}
	slices.Sort(o.Pending)
	cordoned := map[string]bool{}
	for _, node := range p.Nodes() {
		if cordoned[node] = true; !left[node] {
			o.Emptied = append(o.Emptied, node)
		}
	}
	for i, node := range after.Nodes {
		if cordoned[node.Name] {
			after.Nodes[i] = node.DeepCopy()
			after.Nodes[i].Spec.Unschedulable = true
		}
	}
	return o
}

// landed is a pod as it is on the node where it is now.
func landed(before, now *corev1.Pod, node string) *corev1.Pod {
	if before == now && before.Spec.NodeName == node {
		return before
	}
	now = now.DeepCopy()
	if now.Spec.NodeName = node; node != "" {
		now.Status.Phase = corev1.PodRunning
		now.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return now
}
