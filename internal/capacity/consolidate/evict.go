package consolidate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/snapshot"
)

// Not by kubectl's drain package: it evicts by name alone, so that a pod that somebody has protected since, or the successor
// of one that has ended, is evicted as well; and its filters know less than the planner's.

// move evicts a pod, and waits until it has ended and its successor has a node. It says why the pod's node is to be given
// up; an error gives up the plan.
func (x *execution) move(ctx context.Context, node, key string) (why string, err error) {
	namespace, name, _ := strings.Cut(key, "/")
	patient, stop := context.WithTimeoutCause(ctx, x.Timing.Pod, errPod)
	defer stop()
	e := &eviction{execution: x, key: types.NamespacedName{Namespace: namespace, Name: name}, node: node}
	for _, part := range []func(context.Context) (string, error){e.evict, e.awaitEnd, e.awaitSuccessor} {
		why, err = part(patient)
		switch {
		case err != nil && ctx.Err() == nil && errors.Is(context.Cause(patient), errPod):
			return e.tooLong()
		case err != nil || why != "":
			return why, err
		}
		if e.pod == nil {
			return "", nil // it is gone from the node already
		}
	}
	return "", nil
}

// eviction is that of one pod.
type eviction struct {
	*execution
	key  types.NamespacedName
	node string
	// The pod that was evicted, or has been ending already.
	pod     *corev1.Pod
	evicted bool
	// How many pods its controller had before, with this one.
	siblings int
	// What is waited for, for whoever waits too long.
	waiting string
	// Whether that is a node for a pod.
	stuck bool
}

// tooLong ends the wait for a pod. A pod that finds no node ends the plan: the cluster is not as the planner sees it.
func (e *eviction) tooLong() (why string, err error) {
	if why = fmt.Sprintf("after %v: %s", e.Timing.Pod, e.waiting); e.stuck {
		return "", errors.New(why)
	}
	return why, nil
}

// evict asks the eviction API until it takes the pod. What it refuses for now, as a PodDisruptionBudget does, may change.
func (e *eviction) evict(ctx context.Context) (why string, err error) {
	err = e.poll(ctx, func(ctx context.Context) (bool, error) {
		var pod corev1.Pod
		err := e.Cluster.Get(ctx, e.key, &pod)
		switch {
		case apierrors.IsNotFound(err) || err == nil && pod.Spec.NodeName != e.node:
			return true, nil
		case err != nil:
			return false, err
		case pod.DeletionTimestamp != nil:
			e.pod = &pod
			return true, nil
		}
		if why = plan.Blocks(&pod); why != "" {
			why = fmt.Sprintf("pod %s: %s", e.key, why)
			return true, nil
		}
		if e.siblings, err = e.count(ctx, &pod); err != nil {
			return false, err
		}
		why, err = e.ask(ctx, &pod)
		return why != "" || err == nil && e.pod != nil, err
	})
	return why, err
}

// ask asks the eviction API for the pod as it was looked at: what has changed since is looked at again.
func (e *eviction) ask(ctx context.Context, pod *corev1.Pod) (why string, err error) {
	err = e.Cluster.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}},
	})
	switch {
	case err == nil:
		e.pod, e.evicted = pod, true
		e.outcome.Moved++
		return "", nil
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		e.waiting = fmt.Sprintf("pod %s changes all the time", e.key)
		return "", nil
	case apierrors.IsTooManyRequests(err):
		e.waiting = fmt.Sprintf("the eviction API does not let pod %s go: %v", e.key, err)
		e.tell("node %s: %s", e.node, e.waiting)
		return "", nil
	case e.waiting != "" && ctx.Err() != nil: // the time is over in the middle of a request: what was known before says more
		return "", nil
	case mayPass(err):
		e.waiting = fmt.Sprintf("pod %s cannot be evicted: %v", e.key, err)
		return "", err
	}
	return fmt.Sprintf("the eviction API refuses pod %s: %v", e.key, err), nil
}

// mayPass is whether an error may go by itself: the API server did not answer, or failed. A pod with two budgets is such a
// failure to it, too.
func mayPass(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

func (e *eviction) awaitEnd(ctx context.Context) (string, error) {
	e.waiting = fmt.Sprintf("pod %s has not ended", e.key)
	return "", e.poll(ctx, func(ctx context.Context) (bool, error) {
		var pod corev1.Pod
		err := e.Cluster.Get(ctx, e.key, &pod)
		return apierrors.IsNotFound(err) || err == nil && pod.UID != e.pod.UID, client.IgnoreNotFound(err)
	})
}

// awaitSuccessor waits until the cluster is as the planner expects it before the next eviction: the pod is made anew, no pod
// is without a node that had one, and the pod's PodDisruptionBudget allows the next.
func (e *eviction) awaitSuccessor(ctx context.Context) (string, error) {
	if !e.evicted {
		return "", nil // somebody else's doing: their controller may not want it again
	}
	return "", e.poll(ctx, func(ctx context.Context) (bool, error) {
		for i, look := range []func(context.Context) (string, error){e.pending, e.successor, e.budgets} {
			waiting, err := look(ctx)
			if err != nil {
				return false, err // what was waited for before still counts
			}
			if waiting != "" {
				e.waiting, e.stuck = waiting, i == 0
				return false, nil
			}
		}
		return true, nil
	})
}

// pending says which pod has no node that had one, or is new.
func (e *eviction) pending(ctx context.Context) (waiting string, err error) {
	var list corev1.PodList
	if err := e.Cluster.List(ctx, &list, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", "")}); err != nil {
		return "", err
	}
	for _, pod := range list.Items {
		if e.waited[pod.UID] || pod.DeletionTimestamp != nil || snapshot.Ended(&pod) || len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		said := "the scheduler has not said why"
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Message != "" {
				said = c.Message
			}
		}
		return fmt.Sprintf("pod %s has no node: %s", snapshot.Key(&pod), said), nil
	}
	return "", nil
}

// successor counts the controller's pods. Where it wants fewer than before, that is enough.
func (e *eviction) successor(ctx context.Context) (waiting string, err error) {
	now, err := e.count(ctx, e.pod)
	if err != nil || now >= e.siblings {
		return "", err
	}
	wanted, known, err := e.replicas(ctx)
	if err != nil || known && now >= wanted {
		return "", err
	}
	return fmt.Sprintf("pod %s has not been made anew by its controller", e.key), nil
}

// replicas is how many pods the controller wants, where it is of a kind that says so.
func (e *eviction) replicas(ctx context.Context) (wanted int, known bool, err error) {
	owner := metav1.GetControllerOf(e.pod)
	switch owner.Kind {
	case "ReplicaSet", "ReplicationController", "StatefulSet":
	default:
		return 0, false, nil
	}
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(owner.APIVersion)
	o.SetKind(owner.Kind)
	err = e.Cluster.Get(ctx, types.NamespacedName{Namespace: e.key.Namespace, Name: owner.Name}, o)
	if apierrors.IsNotFound(err) {
		return 0, true, nil
	}
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	return int(n), err == nil, err
}

// count is how many pods that do not end a pod's controller has. A pod without one is not evicted.
func (e *eviction) count(ctx context.Context, pod *corev1.Pod) (n int, err error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return 0, nil
	}
	var list corev1.PodList
	if err := e.Cluster.List(ctx, &list, client.InNamespace(pod.Namespace)); err != nil {
		return 0, err
	}
	for _, p := range list.Items {
		if by := metav1.GetControllerOf(&p); by != nil && by.UID == owner.UID && p.DeletionTimestamp == nil && !snapshot.Ended(&p) {
			n++
		}
	}
	return n, nil
}

// budgets says which one does not allow the next eviction: the planner would keep the node of that pod.
func (e *eviction) budgets(ctx context.Context) (waiting string, err error) {
	var list policyv1.PodDisruptionBudgetList
	if err := e.Cluster.List(ctx, &list, client.InNamespace(e.pod.Namespace)); err != nil {
		return "", err
	}
	why, err := plan.Forbids(e.pod, list.Items)
	if why != "" {
		why = fmt.Sprintf("pod %s is evicted, and its place is not healthy yet: %s", e.key, why)
	}
	return why, err
}

// leftMore: pods have come that are to be moved. They are the planner's business.
const leftMore = "more to move"

// awaitEmpty waits until a node has no pods but its own; else it says what it has.
func (x *execution) awaitEmpty(ctx context.Context, node string) (left string, err error) {
	patient, stop := context.WithTimeoutCause(ctx, x.Timing.Pod, errPod)
	defer stop()
	err = x.poll(patient, func(ctx context.Context) (bool, error) {
		var list corev1.PodList
		if err := x.Cluster.List(ctx, &list, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", node)}); err != nil {
			return false, err
		}
		left = ""
		for _, pod := range list.Items {
			switch {
			case plan.Stays(&pod) || snapshot.Ended(&pod):
			case pod.DeletionTimestamp == nil:
				left = leftMore
				return true, nil
			default:
				left = fmt.Sprintf("after %v: pod %s has not ended", x.Timing.Pod, snapshot.Key(&pod))
			}
		}
		return left == "", nil
	})
	if ctx.Err() == nil && errors.Is(context.Cause(patient), errPod) {
		return left, nil
	}
	return left, err
}

// poll asks until done says so, or ctx ends. An API server that does not answer, or is not up to it, is asked again.
func (x *execution) poll(ctx context.Context, done func(context.Context) (bool, error)) error {
	var failed error
	err := wait.PollUntilContextCancel(ctx, x.Timing.Poll, true, func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		switch {
		case err == nil:
			return ok, nil
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err):
			return false, err
		}
		failed = err
		return false, nil
	})
	if err != nil && ctx.Err() != nil {
		return errors.Join(err, failed)
	}
	return err
}
