package consolidate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Released is a node that an executor has taken its hands off.
type Released struct {
	Node string `json:"node"`
	// Uncordoned: false where somebody else's cordon stays, or somebody has ended ours.
	Uncordoned bool   `json:"uncordoned"`
	Why        string `json:"why"`
}

// nodes are those that have a marker, by name. What cannot be read is an error beside the others.
func (e *Executor) nodes(ctx context.Context) (all []*marked, unknown error) {
	var list corev1.NodeList
	if err := e.Cluster.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var unread []error
	for i := range list.Items {
		n, err := markerOf(&list.Items[i])
		if err != nil {
			unread = append(unread, err)
		} else if n != nil {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *marked) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(unread...)
}

// write changes a node that still is as it was read. It is our own manager's, so that our cordon can be told from others'.
func (e *Executor) write(ctx context.Context, node *corev1.Node, change func(*corev1.Node)) error {
	before := node.DeepCopy()
	change(node)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return e.Cluster.Patch(ctx, node, patch, client.FieldOwner(manager))
}

// cordon cordons and marks a node in one write. Where it has changed since it was looked at, it is looked at again.
func (e *Executor) cordon(ctx context.Context, want Node, marker Marker) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var node corev1.Node
		if err := e.Cluster.Get(ctx, client.ObjectKey{Name: want.Name}, &node); err != nil {
			return err
		}
		n, err := markerOf(&node)
		switch {
		case err != nil:
			return err
		case node.UID != want.UID:
			return fmt.Errorf("node %s is another one than the plan is for: it was made anew", want.Name)
		case n != nil:
			return fmt.Errorf("node %s belongs to plan %s of %s", want.Name, n.marker.Plan, n.marker.Owner)
		case node.Spec.Unschedulable:
			return fmt.Errorf("somebody has cordoned node %s", want.Name)
		}
		return e.write(ctx, &node, func(node *corev1.Node) {
			node.Spec.Unschedulable = true
			marker.put(node)
		})
	})
}

// release takes the marker off a node, and the cordon if it is ours. A node that is gone is released.
func (e *Executor) release(ctx context.Context, name, why string) (Released, error) {
	r := Released{Node: name, Why: why}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var node corev1.Node
		if err := e.Cluster.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return client.IgnoreNotFound(err)
		}
		if n, err := markerOf(&node); n == nil || err != nil {
			return err
		}
		r.Uncordoned = cordonIsOurs(&node)
		err := e.write(ctx, &node, func(node *corev1.Node) {
			delete(node.Annotations, MarkerAnnotation)
			if r.Uncordoned {
				node.Spec.Unschedulable = false
			}
		})
		return client.IgnoreNotFound(err)
	})
	if err != nil {
		return r, fmt.Errorf("node %s stays cordoned and marked: %w", name, err)
	}
	return r, nil
}

// releaseAll releases the marked nodes that are wanted. One that cannot be does not keep the others.
func (e *Executor) releaseAll(ctx context.Context, wanted func(*marked) bool, why string) (released []Released, err error) {
	nodes, unknown := e.nodes(ctx)
	failed := []error{unknown}
	for _, n := range nodes {
		if !wanted(n) {
			continue
		}
		r, err := e.release(ctx, n.Name, why)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		released = append(released, r)
	}
	return released, errors.Join(failed...)
}

// finish notes on a node that it is empty.
func (e *Executor) finish(ctx context.Context, name string) (lost string, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var node corev1.Node
		if err := e.Cluster.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		n, err := markerOf(&node)
		if err != nil {
			return err
		}
		if lost = e.takenFrom(&node, n); lost != "" {
			return nil
		}
		now := e.Now()
		n.marker.Emptied = &now
		return e.write(ctx, &node, func(node *corev1.Node) { n.marker.put(node) })
	})
	if apierrors.IsNotFound(err) {
		return "it is gone", nil
	}
	return lost, err
}

// takenFrom says who has taken a node out of this executor's hands; "": nobody has.
func (e *Executor) takenFrom(node *corev1.Node, n *marked) string {
	switch {
	case n == nil:
		return "somebody has removed its marker"
	case n.marker.Owner != e.Owner:
		return fmt.Sprintf("it belongs to plan %s of %s now", n.marker.Plan, n.marker.Owner)
	case !node.Spec.Unschedulable:
		return "somebody has uncordoned it"
	case !cordonIsOurs(node):
		return "somebody else has cordoned it, too"
	}
	return ""
}
