package nodepods

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/node/agent"
)

// passing are the reasons that come with an agent's start and end. They make no event.
var passing = []string{reasonStarting, reasonStopped, agent.NotKnown}

// turned are the conditions of which operators are told that they have turned, from before to after.
func turned(before, after []metav1.Condition) []metav1.Condition {
	var list []metav1.Condition
	for _, name := range []string{v1alpha1.ConditionEnforced, v1alpha1.ConditionSized} {
		was, is := meta.FindStatusCondition(before, name), meta.FindStatusCondition(after, name)
		if is == nil || slices.Contains(passing, is.Reason) {
			continue
		}
		from := metav1.ConditionTrue // as it should be, unless it was said to be otherwise
		if was != nil && !slices.Contains(passing, was.Reason) {
			from = was.Status
		}
		if from != is.Status {
			list = append(list, *is)
		}
	}
	return list
}

// tell makes an event of the Node, which kubectl describe shows.
func (r *Reporter) tell(ctx context.Context, owners []metav1.OwnerReference, c metav1.Condition) {
	var node types.UID
	for _, owner := range owners {
		node = owner.UID // the Node, unless somebody else has made the TemperNode
	}
	now := metav1.Now()
	kind := corev1.EventTypeNormal
	if c.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: r.node + ".", Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: r.node, UID: node},
		Reason:         c.Type + string(c.Status), Message: c.Reason + ": " + c.Message, Type: kind,
		Source:         corev1.EventSource{Component: "temper-agent", Host: r.node},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if err := r.cluster.Create(ctx, event); err != nil {
		r.log.Error("cannot make an event of the node", "reason", event.Reason, "error", err)
	}
}
