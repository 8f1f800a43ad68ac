package policy

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
)

// Namespace is what a namespace says of its pods' tiers.
type Namespace struct {
	Name   string
	Labels labels.Set
}

// limit holds a pod to the highest tier of its namespace. Pods that have theirs from Kubernetes' own classes alone are
// not held to it: they may be what keeps the cluster's network or storage going, in a namespace of any name.
func (n *Namespace) limit(v *Verdict) {
	highest, why := n.highest(v)
	if v.Tier < highest && !v.builtIn {
		v.lower(highest, why)
	}
}

// highest is the namespace's highest tier, and what says so.
func (n *Namespace) highest(v *Verdict) (tier.Tier, string) {
	if label, labelled := n.Labels[v1alpha1.HighestTierLabel]; labelled {
		t, err := tier.Parse(label)
		if err == nil {
			return t, fmt.Sprintf("label %s of namespace %s", v1alpha1.HighestTierLabel, n.Name)
		}
		v.refuse("label %s of namespace %s: %v", v1alpha1.HighestTierLabel, n.Name, err)
	}
	if n.Name == metav1.NamespaceSystem {
		return tier.System, ""
	}
	return tier.Standard, fmt.Sprintf("namespace %s, which has no label %s", n.Name, v1alpha1.HighestTierLabel)
}
