// Which nodes lowered pods may come to.
//
// Problem: between two reports a node may cease to be enforced, and pods that were lowered before wait for a node.
//
// Method: each lowered pod asks for one v1alpha1.OvercommitResource. Nodes offer it while they are enforced, and the scheduler
// puts such a pod on no other. It is taken from a node's status altogether, and not set to 0: a kubelet that starts again
// looks at the pods of its node anew, and would refuse running ones for a resource that is 0, or for a label that is gone. It
// passes over a resource that its node does not have.
//
// Limits: what the scheduler decided before it was told stands. While no controller runs, nodes offer what they did.

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"temper.dev/temper/api/v1alpha1"
)

// offered is how many pods a node offers a place: more than it can hold.
var offered = *resource.NewQuantity(1_000_000, resource.DecimalSI)

// again is how often a node is looked at that nothing is heard of: its agent may have gone.
const again = time.Minute

// nodes has those offer v1alpha1.OvercommitResource that are enforced.
type nodes struct {
	cluster client.Client
	now     func() time.Time
}

func (n *nodes) watch(m manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
		list, err := nodesOf(ctx, n.cluster)
		if err != nil {
			log.FromContext(ctx).Error(err, "cannot list nodes")
		}
		for _, node := range list {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: node.Name}})
		}
		return requests
	})
	return builder.ControllerManagedBy(m).Named("node").
		For(&corev1.Node{}).
		Watches(&v1alpha1.TemperNode{}, &handler.EnqueueRequestForObject{}). // of the node's name
		Watches(&v1alpha1.CapacityPolicy{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(n)
}

// Reconcile has a node offer the resource, or not. Where the CapacityPolicy is gone, no node begins to: what is lowered by then
// may still come to those that do.
func (n *nodes) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := n.cluster.Get(ctx, request.NamespacedName, &node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var report v1alpha1.TemperNode
	if err := n.cluster.Get(ctx, request.NamespacedName, &report); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	capacity, inCapacity := node.Status.Capacity[v1alpha1.OvercommitResource]
	allocatable, inAllocatable := node.Status.Allocatable[v1alpha1.OvercommitResource]
	full := capacity.Equal(offered) && allocatable.Equal(offered) // a kubelet makes it 0 where its node was made anew
	// Where it cannot be told, it is not: what the error says is told once the node offers nothing.
	is, selecting := n.isSelected(ctx, &node, full)
	offers := selecting == nil && is && isEnforced(&report, n.now())
	if offers && !full || !offers && (inCapacity || inAllocatable) {
		if err := n.offer(ctx, &node, offers); err != nil {
			return reconcile.Result{}, errors.Join(selecting, err)
		}
	}
	if !offers {
		return reconcile.Result{}, selecting
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// isSelected is whether the CapacityPolicy is for a node. Where there is none any more, it is as it was.
func (n *nodes) isSelected(ctx context.Context, node *corev1.Node, was bool) (bool, error) {
	var policy v1alpha1.CapacityPolicy
	if err := n.cluster.Get(ctx, policyKey, &policy); apierrors.IsNotFound(err) {
		return was, nil
	} else if err != nil {
		return false, err
	}
	return selected(&policy, node)
}

// offer writes it as the kubelet keeps it: a kubelet makes of the capacity what is allocatable, but later.
func (n *nodes) offer(ctx context.Context, node *corev1.Node, offers bool) error {
	amount := map[string]any{v1alpha1.OvercommitResource: nil}
	if offers {
		amount[v1alpha1.OvercommitResource] = &offered
	}
	text, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": amount, "allocatable": amount}})
	if err != nil {
		return err
	}
	err = n.cluster.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, text))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		log.FromContext(ctx).Info("lowered pods", "node", node.Name, "may come", offers)
	}
	return err
}

// selected is whether a policy is for a node.
func selected(policy *v1alpha1.CapacityPolicy, node *corev1.Node) (bool, error) {
	if policy.Spec.NodeSelector == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(policy.Spec.NodeSelector)
	if err != nil {
		return false, err
	}
	return selector.Matches(labels.Set(node.Labels)), nil
}

// enforced is what a report says, however old it is.
func enforced(report *v1alpha1.TemperNode) bool {
	return meta.IsStatusConditionTrue(report.Status.Conditions, v1alpha1.ConditionEnforced)
}
