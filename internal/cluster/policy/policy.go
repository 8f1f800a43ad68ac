// Package policy says which tier a pod is in, and by which rule of which TierPolicy.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubectl/pkg/util/qos"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/config"
)

const (
	maxReservation = 1000 // per cent of critical pods' CPU requests
	// DefaultReservation is what counts where a policy does not say.
	DefaultReservation = 100
	maxRules           = 64 // of a policy, and classes of a rule
)

// builtIn are the classes that Kubernetes makes itself. Their pods keep nodes and cluster going: a policy that does not
// name them must not put them where its QoS classes would, a kube-proxy without requests in background.
var builtIn = map[string]struct {
	value int32
	tier  tier.Tier
}{
	"system-node-critical":    {2000001000, tier.System},
	"system-cluster-critical": {2000000000, tier.Critical},
}

// BuiltInPriority is the value of a class that Kubernetes makes itself.
func BuiltInPriority(class string) (value int32, ok bool) {
	c, ok := builtIn[class]
	return c.value, ok
}

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
	Rule   string    `json:"rule"`   // "": none fits
	Reason string    `json:"reason"`
	// A rule that comes before asks for the pod's priority, which nobody has resolved yet (spec.priority is nil).
	Unresolved bool `json:"unresolved,omitempty"`
	// What labels ask for and do not get.
	Refused string `json:"refused,omitempty"`
	Limits  Limits `json:"limits"`
	builtIn bool   // by Kubernetes' own class alone
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
	if n := len(from.Spec.Rules); n > maxRules {
		return fail("rules: %d are more than %d", n, maxRules)
	}
	for i, r := range from.Spec.Rules {
		t, err := tier.Parse(string(r.Tier))
		if err != nil {
			return fail("rules[%d].tier: %w", i, err)
		}
		if err := checkRule(r); err != nil {
			return fail("rules[%d]%w", i, err)
		}
		if slices.ContainsFunc(p.rules, func(before rule) bool { return before.name == r.Name }) {
			return fail("rules: there are two rules %q", r.Name)
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
	if err := checkPodLimits(from.Spec.PodLimits); err != nil {
		return fail("podLimits: %w", err)
	}
	return p, nil
}

// checkRule checks what pods a rule fits; errors begin with the field.
func checkRule(r v1alpha1.TierRule) error {
	if faults := validation.IsDNS1123Label(r.Name); len(faults) > 0 {
		return fmt.Errorf(".name: %q: %s", r.Name, faults[0])
	}
	names, v := r.PriorityClassNames, r.Priority
	if names == nil && v == nil {
		return errors.New(": a rule has priorityClassNames, or priority, or both")
	}
	if names != nil && (len(names) == 0 || len(names) > maxRules) {
		return fmt.Errorf(".priorityClassNames: there are %d, not 1 to %d", len(names), maxRules)
	}
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			return fmt.Errorf(".priorityClassNames: %q is empty, or there twice", name)
		}
	}
	switch {
	case v == nil:
	case v.Min == nil && v.Max == nil:
		return errors.New(".priority: a range has min, or max, or both")
	case v.Min != nil && v.Max != nil && *v.Min > *v.Max:
		return errors.New(".priority: min is above max")
	}
	return nil
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
	if r := spec.ReservationPercent; r != nil && (*r < 1 || *r > maxReservation) {
		return fmt.Errorf("reservationPercent: %d is not from 1 to %d", *r, maxReservation)
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

// Modes are what the policy says of loans, SMT and limits, in the words of a node's configuration.
func (p *Policy) Modes() (loans, smt, limits string) {
	spec := p.from.Spec
	return cmp.Or(spec.Loans, config.LoansGaps), cmp.Or(spec.SMT, config.SMTShare), cmp.Or(spec.Limits, config.LimitsPaced)
}

// Reservation is the per cent of critical pods' CPU requests up to which critical comes first.
func (p *Policy) Reservation() int64 {
	if r := p.from.Spec.ReservationPercent; r != nil {
		return int64(*r)
	}
	return DefaultReservation
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
		return cmp.Or(cmp.Compare(b.from.Spec.Precedence, a.from.Spec.Precedence), byAge(a.from, b.from), cmp.Compare(a.Name, b.Name))
	})
}

// byAge puts the oldest first. One without a time is yet to be made.
func byAge(a, b *v1alpha1.TierPolicy) int {
	switch x, y := a.CreationTimestamp, b.CreationTimestamp; {
	case x.IsZero() == y.IsZero():
		return x.Compare(y.Time)
	case x.IsZero():
		return 1
	}
	return -1
}

// Tier is a pod's tier in its namespace. Without a policy (nil) a pod is standard, or what labels lower it to; where
// nothing is known of the namespace (nil), it is taken to allow all.
func (p *Policy) Tier(pod *corev1.Pod, in *Namespace) Verdict {
	v := p.given(pod)
	if in != nil {
		in.limit(&v)
	}
	v.ownTier(pod)
	v.Limits = p.limits()
	p.ownLimits(&v, pod)
	return v
}

// ownTier is what the pod's label makes of its tier.
func (v *Verdict) ownTier(pod *corev1.Pod) {
	asked, labelled := pod.Labels[v1alpha1.TierLabel]
	if !labelled {
		return
	}
	switch t, err := tier.Parse(asked); {
	case err != nil:
		v.refuse("label %s: %v", v1alpha1.TierLabel, err)
	case t < v.Tier:
		v.refuse("label %s asks for %v; a label lowers a pod's tier, and never raises it", v1alpha1.TierLabel, t)
	case t > v.Tier:
		v.lower(t, "label "+v1alpha1.TierLabel)
	}
}

func (v *Verdict) lower(to tier.Tier, why string) {
	v.Reason = fmt.Sprintf("%s, below %v (%s)", why, v.Tier, v.Reason)
	v.Tier = to
}

func (v *Verdict) refuse(format string, args ...any) {
	if v.Refused != "" {
		v.Refused += "; "
	}
	v.Refused += fmt.Sprintf(format, args...)
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
	if c, ok := builtIn[pod.Spec.PriorityClassName]; ok {
		v.Tier, v.Reason, v.builtIn = c.tier, "PriorityClass "+pod.Spec.PriorityClassName, true
		return v
	}
	class := qos.GetPodQOS(pod)
	v.Tier, v.Reason = p.qos[class], "QoS class "+string(class)
	if by := OfTheSystem(pod); v.Tier == tier.Background && by != "" {
		v.Tier, v.Reason = tier.Standard, fmt.Sprintf("%s, so not background (%s)", by, v.Reason)
	}
	return v
}

// systemPrefix begins the names of namespaces that Kubernetes keeps for itself.
const systemPrefix = "kube-"

// OfTheSystem says by what a pod is known to be one that a node or the cluster depends on; "": by nothing. Such a pod is not in
// background unless its class, its priority or a label says so: many request nothing, and nobody chose that for them.
// A pod could say of itself that it has such an owner, and gains no more by it than by a request for 1m of CPU.
func OfTheSystem(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		return "of a DaemonSet"
	}
	if strings.HasPrefix(pod.Namespace, systemPrefix) {
		return "in namespace " + pod.Namespace
	}
	return ""
}

func contains(r *v1alpha1.PriorityRange, value int32) bool {
	return r != nil && (r.Min == nil || *r.Min <= value) && (r.Max == nil || value <= *r.Max)
}
