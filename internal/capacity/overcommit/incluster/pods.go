package incluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/capacity/overcommit"
	"temper.dev/temper/internal/capacity/snapshot"
)

// atOnce is how many pods are changed at a time.
const atOnce = 8

// Repair lowers the pods that the policy in force missed. Each that was done is counted.
func Repair(ctx context.Context, cluster client.Client, rules *overcommit.Rules, dryRun bool, count func(done, all int)) (Outcomes, error) {
	namespaces, err := Namespaces(ctx, cluster, rules.Namespaces)
	if err != nil {
		return nil, err
	}
	pods, err := Pods(ctx, cluster, rules.Namespaces)
	if err != nil {
		return nil, err
	}
	var outcomes Outcomes
	var due []source
	for _, pod := range pods {
		switch change := rules.Repair(&pod, namespaces[pod.Namespace]); {
		case change.Left != "":
			outcomes = append(outcomes, leftAlone(&pod, change))
		case change.Step == overcommit.Done:
		case dryRun:
			outcomes = append(outcomes, outcome(&pod, StateDue, ""))
		default:
			due = append(due, func() ([]corev1.Pod, error) { return []corev1.Pod{pod}, nil })
		}
	}
	done, err := each(ctx, len(due), due, count, func(pod *corev1.Pod) (Outcome, bool) {
		return bring(ctx, cluster, pod, StateLowered, func(pod *corev1.Pod) overcommit.Change {
			return rules.Repair(pod, namespaces[pod.Namespace])
		})
	})
	return sorted(append(outcomes, done...)), err
}

// Lowered is how many pods have something to be given back, or are half-way.
func Lowered(ctx context.Context, cluster client.Reader, rules *overcommit.Rules) (n int, err error) {
	pods, err := Pods(ctx, cluster, rules.All())
	for _, pod := range pods {
		if change := rules.Restore(&pod, overcommit.Namespace{}); change.Step != overcommit.Done || change.Left != "" && !change.Stale {
			n++
		}
	}
	return n, err
}

// Plan says what it takes to give pods back what they asked for.
func Plan(ctx context.Context, cluster client.Reader, rules *overcommit.Rules) (overcommit.RestorePlan, error) {
	namespaces, err := Namespaces(ctx, cluster, rules.All())
	if err != nil {
		return overcommit.RestorePlan{}, err
	}
	var nodes corev1.NodeList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&nodes, &pods} {
		if err := cluster.List(ctx, list); err != nil {
			return overcommit.RestorePlan{}, err
		}
	}
	return rules.PlanRestore(nodes.Items, pods.Items, namespaces), nil
}

// Restore does what a plan says that fits, node by node, and waits until kubelets have answered. What is on a node is looked
// at again before it is its turn.
func Restore(ctx context.Context, cluster client.Client, rules *overcommit.Rules, plan overcommit.RestorePlan, limit time.Duration, count func(done, all int)) (Outcomes, error) {
	namespaces, err := Namespaces(ctx, cluster, rules.All())
	if err != nil {
		return nil, err
	}
	next := func(pod *corev1.Pod) overcommit.Change { return rules.Restore(pod, namespaces[pod.Namespace]) }
	var mu sync.Mutex
	var outcomes Outcomes
	var due []source // one a node, so that its pods come one after another
	for _, n := range plan.Nodes {
		due = append(due, func() ([]corev1.Pod, error) {
			fit, others, err := onNode(ctx, cluster, rules, n.Name, namespaces)
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, others...)
			return fit, err
		})
	}
	done, err := each(ctx, plan.Pods, due, count, func(pod *corev1.Pod) (Outcome, bool) { return bring(ctx, cluster, pod, StateRestored, next) })
	outcomes = append(outcomes, done...)
	if err != nil {
		return sorted(outcomes), err
	}
	pods, err := Pods(ctx, cluster, rules.All())
	if err != nil {
		return sorted(outcomes), err
	}
	known := map[string]bool{}
	for _, o := range outcomes {
		known[o.Namespace+"/"+o.Name] = true
	}
	for _, pod := range pods {
		if change := next(&pod); change.Left != "" && !known[snapshot.Key(&pod)] {
			outcomes = append(outcomes, leftAlone(&pod, change))
		}
	}
	return sorted(outcomes), answers(ctx, cluster, outcomes, limit)
}

// onNode plans for a node as it is now. Pods without a node are looked for among all.
func onNode(ctx context.Context, cluster client.Client, rules *overcommit.Rules, name string, namespaces map[string]overcommit.Namespace) (fit []corev1.Pod, others Outcomes, err error) {
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.MatchingFields{"spec.nodeName": name}); err != nil {
		return nil, nil, err
	}
	var nodes []corev1.Node
	if name != "" {
		var node corev1.Node
		if err := cluster.Get(ctx, client.ObjectKey{Name: name}, &node); client.IgnoreNotFound(err) != nil {
			return nil, nil, err
		}
		nodes = append(nodes, node)
	}
	byName := map[string]*corev1.Pod{}
	for i := range pods.Items {
		byName[snapshot.Key(&pods.Items[i])] = &pods.Items[i]
	}
	for _, n := range rules.PlanRestore(nodes, pods.Items, namespaces).Nodes {
		for _, key := range n.Fit {
			fit = append(fit, *byName[key])
		}
		for _, key := range n.WouldNotFit {
			others = append(others, outcome(byName[key], StateNoRoom, "its node has no room for what it asked for"))
		}
	}
	return fit, others, nil
}

// source says which pods are to be changed, in which order, when it is their turn.
type source func() ([]corev1.Pod, error)

// each does something to the pods of some sources at a time.
func each(ctx context.Context, all int, sources []source, count func(done, all int), do func(*corev1.Pod) (Outcome, bool)) (Outcomes, error) {
	var (
		mu       sync.Mutex
		outcomes Outcomes
		failed   error
		done     int
		workers  sync.WaitGroup
	)
	queue := make(chan source, len(sources))
	for _, s := range sources {
		queue <- s
	}
	close(queue)
	count(0, all)
	for range atOnce {
		workers.Go(func() {
			for s := range queue {
				if ctx.Err() != nil {
					return
				}
				pods, err := s()
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
				for i := range pods {
					if ctx.Err() != nil {
						return
					}
					became, known := do(&pods[i])
					mu.Lock()
					if done++; known {
						outcomes = append(outcomes, became)
					}
					count(done, all)
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return outcomes, errors.Join(failed, ctx.Err())
}

// bring makes a pod's steps until there is none, from what the pod is now. A pod that is gone is no outcome.
func bring(ctx context.Context, cluster client.Client, pod *corev1.Pod, state string, next func(*corev1.Pod) overcommit.Change) (Outcome, bool) {
	err := cluster.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	for range 100 { // a kubelet changes a pod between; nobody does so for ever
		if err == nil {
			switch change := next(pod); {
			case change.Left != "":
				return leftAlone(pod, change), true
			case change.Step == overcommit.Done:
				return outcome(pod, state, ""), true
			default:
				err = step(ctx, cluster, pod, change)
			}
		}
		switch {
		case apierrors.IsConflict(err):
			err = cluster.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		case apierrors.IsNotFound(err):
			return Outcome{}, false
		case err != nil:
			return outcome(pod, StateFailed, err.Error()), true
		}
	}
	return outcome(pod, StateFailed, "somebody changes it all the time"), true
}

// step writes one change, if the pod is still as it was read.
func step(ctx context.Context, cluster client.Client, pod *corev1.Pod, change overcommit.Change) error {
	metadata := map[string]any{"resourceVersion": pod.ResourceVersion}
	body := map[string]any{"metadata": metadata}
	keys := []string{overcommit.OriginalAnnotation, overcommit.FactorAnnotation}
	if change.Step == overcommit.Note {
		annotations := map[string]any{}
		for _, key := range keys {
			if annotations[key] = nil; change.Pod.Annotations[key] != "" {
				annotations[key] = change.Pod.Annotations[key]
			}
		}
		metadata["annotations"] = annotations
	} else {
		body["spec"] = requests(pod, change.Pod)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if change.Step == overcommit.Resize {
		return cluster.SubResource("resize").Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, text), client.FieldOwner(overcommit.Manager))
	}
	if err := cluster.Patch(ctx, pod, client.RawPatch(types.MergePatchType, text), client.FieldOwner(overcommit.Manager)); err != nil {
		return err
	}
	for _, key := range keys {
		if pod.Annotations[key] != change.Pod.Annotations[key] {
			return fmt.Errorf("its annotations were kept as they were: the user cannot %s resource %q in API group %q in the namespace %q",
				overcommit.PermitVerb, overcommit.PermitResource, overcommit.PermitGroup, pod.Namespace)
		}
	}
	return nil
}

// requests are the CPU requests that differ, as a patch of a pod's spec.
func requests(from, to *corev1.Pod) map[string]any {
	spec := map[string]any{}
	differ := func(a, b *corev1.ResourceRequirements) map[string]any {
		if a == nil || b == nil || a.Requests.Cpu().Cmp(*b.Requests.Cpu()) == 0 {
			return nil
		}
		return map[string]any{"requests": map[string]any{"cpu": b.Requests.Cpu()}}
	}
	for key, lists := range map[string][2][]corev1.Container{
		"containers": {from.Spec.Containers, to.Spec.Containers}, "initContainers": {from.Spec.InitContainers, to.Spec.InitContainers}} {
		var changed []map[string]any
		for i := range lists[0] {
			if d := differ(&lists[0][i].Resources, &lists[1][i].Resources); d != nil {
				changed = append(changed, map[string]any{"name": lists[0][i].Name, "resources": d})
			}
		}
		if changed != nil {
			spec[key] = changed
		}
	}
	if d := differ(from.Spec.Resources, to.Spec.Resources); d != nil {
		spec["resources"] = d
	}
	return spec
}

// answers waits until the kubelets have answered the resizes, and corrects what became of those that they put off.
func answers(ctx context.Context, cluster client.Reader, outcomes Outcomes, limit time.Duration) error {
	asked := map[string]*Outcome{}
	var namespaces []string
	for i, o := range outcomes {
		if o.State == StateRestored && o.Node != "" {
			asked[o.Namespace+"/"+o.Name] = &outcomes[i]
			namespaces = append(namespaces, o.Namespace)
		}
	}
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	err := wait.PollUntilContextTimeout(ctx, time.Second, limit, true, func(context.Context) (bool, error) {
		pods, err := Pods(ctx, cluster, namespaces)
		if err != nil {
			return false, err
		}
		open := 0
		for _, pod := range pods {
			o, ok := asked[snapshot.Key(&pod)]
			if !ok {
				continue
			}
			if o.State, o.Why = answer(&pod); o.State == StateUnanswered {
				open++
			}
		}
		return open == 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil // the outcomes say who has not answered
	}
	return err
}

func answer(pod *corev1.Pod) (state, why string) {
	if pod.Status.ObservedGeneration < pod.Generation {
		return StateUnanswered, "its kubelet has not looked at the resize yet"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodResizePending || c.Status != corev1.ConditionTrue {
			continue
		}
		if c.Reason == corev1.PodReasonInfeasible {
			return StateInfeasible, c.Message
		}
		return StateDeferred, c.Message
	}
	return StateRestored, ""
}
