// Package policy says which tier a pod is in, and by which rule of which TierPolicy.
package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubectl/pkg/util/qos"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/config"
	"temper.dev/temper/internal/tier"
)

const maxReservation = 1000 // per cent of critical pods' CPU requests

// Policy is a TierPolicy that was found valid.
type Policy struct {
	Name  string
	nodes labels.Selector
	rules []rule
	qos   map[corev1.PodQOSClass]tier.Tier
	from  *v1alpha1.TierPolicy
}

type rule struct {
	name     string
	classes  []string
	priority *v1alpha1.PriorityRange
	tier     tier.Tier
}

// Verdict is a pod's tier, and why.
type Verdict struct {
	Tier   tier.Tier `json:"tier"`
	Policy string    `json:"policy"` // "": no policy is for the node
	Rule   string    `json:"rule"`   // "": none fits, and the QoS class decides
	Reason string    `json:"reason"`
	// A rule that comes before asks for the pod's priority, which nobody has resolved yet (spec.priority is nil).
	Unresolved bool `json:"unresolved,omitempty"`
	// What the pod's label asks for and does not get.
	Refused string `json:"refused,omitempty"`
}

// Compile checks a policy. The API server checks the same (packaging/kubernetes/crds); a file was seen by no API server.
func Compile(from *v1alpha1.TierPolicy) (*Policy, error) {
	p := &Policy{Name: from.Name, nodes: labels.Everything(), from: from}
	fail := func(format string, args ...any) (*Policy, error) {
		return nil, fmt.Errorf("TierPolicy %s: %w", from.Name, fmt.Errorf(format, args...))
	}
	if s := from.Spec.NodeSelector; s != nil {
		var err error
		if p.nodes, err = metav1.LabelSelectorAsSelector(s); err != nil {
			return fail("nodeSelector: %w", err)
		}
	}
	for i, r := range from.Spec.Rules {
		t, err := tier.Parse(string(r.Tier))
		if err != nil {
			return fail("rules[%d].tier: %w", i, err)
		}
		switch v := r.Priority; {
		case len(validation.IsDNS1123Label(r.Name)) > 0:
			return fail("rules[%d].name: %q: %s", i, r.Name, validation.IsDNS1123Label(r.Name)[0])
		case slices.ContainsFunc(p.rules, func(before rule) bool { return before.name == r.Name }):
			return fail("rules[%d]: there are two rules %q", i, r.Name)
		case len(r.PriorityClassNames) == 0 && v == nil:
			return fail("rules[%d]: a rule has priorityClassNames, or priority, or both", i)
		case v != nil && v.Min == nil && v.Max == nil:
			return fail("rules[%d].priority: a range has min, or max, or both", i)
		case v != nil && v.Min != nil && v.Max != nil && *v.Min > *v.Max:
			return fail("rules[%d].priority: min is above max", i)
		}
		p.rules = append(p.rules, rule{r.Name, r.PriorityClassNames, r.Priority, t})
	}
	var err error
	if p.qos, err = qosTiers(from.Spec.QoS); err != nil {
		return fail("qos.%w", err)
	}
	if err := checkNode(from.Spec); err != nil {
		return fail("%w", err)
	}
	return p, nil
}

// checkNode checks what a policy says of nodes.
func checkNode(spec v1alpha1.TierPolicySpec) error {
	for _, mode := range []struct {
		field, value string
		of           []string
	}{
		{"loans", spec.Loans, []string{config.LoansGaps, config.LoansIdle, config.LoansNever}},
		{"smt", spec.SMT, []string{config.SMTShare, config.SMTExclusive}},
		{"limits", spec.Limits, []string{config.LimitsPaced, config.LimitsGap, config.LimitsFreeze, config.LimitsIgnore}},
	} {
		if mode.value != "" && !slices.Contains(mode.of, mode.value) {
			return fmt.Errorf("%s: %q is none of %s", mode.field, mode.value, strings.Join(mode.of, ", "))
		}
	}
	if r := spec.ReservationPercent; r != nil && (*r < 0 || *r > maxReservation) {
		return fmt.Errorf("reservationPercent: %d is not from 0 to %d", *r, maxReservation)
	}
	return nil
}

func qosTiers(from v1alpha1.QoSTiers) (map[corev1.PodQOSClass]tier.Tier, error) {
	tiers := map[corev1.PodQOSClass]tier.Tier{}
	for _, class := range []struct {
		class  corev1.PodQOSClass
		field  string
		tier   v1alpha1.Tier
		unless tier.Tier
	}{
		{corev1.PodQOSGuaranteed, "guaranteed", from.Guaranteed, tier.Standard},
		{corev1.PodQOSBurstable, "burstable", from.Burstable, tier.Standard},
		{corev1.PodQOSBestEffort, "bestEffort", from.BestEffort, tier.Background},
	} {
		tiers[class.class] = class.unless
		if class.tier == "" {
			continue
		}
		t, err := tier.Parse(string(class.tier))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", class.field, err)
		}
		tiers[class.class] = t
	}
	return tiers, nil
}

// Select is the policy that applies to a node with these labels, of those that are for it; nil: none is.
func Select(policies []*Policy, node labels.Set) *Policy {
	var fits []*Policy
	for _, p := range policies {
		if p.nodes.Matches(node) {
			fits = append(fits, p)
		}
	}
	if len(fits) == 0 {
		return nil
	}
	return slices.MinFunc(fits, func(a, b *Policy) int {
		return cmp.Or(cmp.Compare(b.from.Spec.Precedence, a.from.Spec.Precedence),
			a.from.CreationTimestamp.Time.Compare(b.from.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// Tier is a pod's tier. Without a policy (nil) all pods are standard.
func (p *Policy) Tier(pod *corev1.Pod) Verdict {
	v := p.given(pod)
	asked, labelled := pod.Labels[v1alpha1.TierLabel]
	if !labelled {
		return v
	}
	switch t, err := tier.Parse(asked); {
	case err != nil:
		v.Refused = fmt.Sprintf("label %s: %v", v1alpha1.TierLabel, err)
	case t < v.Tier:
		v.Refused = fmt.Sprintf("label %s asks for %v; a label lowers a pod's tier, and never raises it", v1alpha1.TierLabel, t)
	case t > v.Tier:
		v.Reason = fmt.Sprintf("label %s, below %v by %s", v1alpha1.TierLabel, v.Tier, v.Reason)
		v.Tier = t
	}
	return v
}

// given is a pod's tier by policy alone.
func (p *Policy) given(pod *corev1.Pod) Verdict {
	if p == nil {
		return Verdict{Tier: tier.Standard, Reason: "no policy is for this node"}
	}
	v := Verdict{Policy: p.Name}
	for _, r := range p.rules {
		value := pod.Spec.Priority
		switch {
		case slices.Contains(r.classes, pod.Spec.PriorityClassName):
			v.Reason = "PriorityClass " + pod.Spec.PriorityClassName
		case value != nil && contains(r.priority, *value):
			v.Reason = fmt.Sprintf("priority %d", *value)
		default:
			v.Unresolved = v.Unresolved || value == nil && r.priority != nil
			continue
		}
		v.Tier, v.Rule = r.tier, r.name
		return v
	}
	class := qos.GetPodQOS(pod)
	v.Tier, v.Reason = p.qos[class], "QoS class "+string(class)
	return v
}

func contains(r *v1alpha1.PriorityRange, value int32) bool {
	return r != nil && (r.Min == nil || *r.Min <= value) && (r.Max == nil || value <= *r.Max)
}
