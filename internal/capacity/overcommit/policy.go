// Package overcommit lowers the CPU requests of pods that are not critical: as a function of a pod (Admit), and as a
// MutatingAdmissionPolicy with the same values (Manifests). A test holds both to the same result (docs/decisions/0062).
package overcommit

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/snapshot"
	"temper.dev/temper/internal/cluster/policy"
)

const (
	// OriginalAnnotation says what the lowered requests were, as "web=1000m,/=1500m"; "/" is the pod's own.
	OriginalAnnotation = "temper.dev/overcommit-original"
	// FactorAnnotation is the factor that was applied.
	FactorAnnotation = "temper.dev/overcommit-factor"
)

// Namespaces whose pods are never lowered.
const (
	systemNamespace = "kube-system"
	ownNamespace    = "temper-system"
)

// Policy says whose CPU requests are lowered, and how far.
type Policy struct {
	Namespaces []string    `json:"namespaces"` // those that take part, by name
	Factor     float64     `json:"factor"`     // above 0, at most 1, with three decimals at most
	Floor      int64       `json:"floor"`      // mCPU; no request is lowered below it
	Tiers      []tier.Tier `json:"tiers"`      // standard, background, or both
	// Autoscaled are the workloads that a HorizontalPodAutoscaler scales by CPU utilisation, a share of requests. An admission
	// policy cannot look autoscalers up.
	Autoscaled   []snapshot.Workload    `json:"autoscaled,omitempty"`
	TierPolicies []*v1alpha1.TierPolicy `json:"tierPolicies,omitempty"` // the cluster's; a pod counts with the highest tier that one of them gives it
	// EnforcedOnly keeps lowered pods from nodes where tiers are not enforced: each asks for the extended resource that only
	// other nodes offer. Who sets it has that resource offered.
	EnforcedOnly bool `json:"enforcedOnly,omitempty"`
	// KeptBy is the CapacityPolicy that a controller keeps the admission policies by; "": a command has made them.
	KeptBy string `json:"keptBy,omitempty"`
	// Before are the factors and floors that were in force earlier: pods may still have what those made of their requests.
	Before []Lowering `json:"before,omitempty"`
	// Left are namespaces that took part earlier: their pods keep their annotations.
	Left []string `json:"left,omitempty"`
}

// Lowering is how far requests are lowered.
type Lowering struct {
	Factor float64 `json:"factor"`
	Floor  int64   `json:"floor"`
}

func (l Lowering) check() error {
	switch n := permille(l.Factor); {
	case math.IsNaN(l.Factor) || l.Factor <= 0 || l.Factor > 1:
		return fmt.Errorf("factor: %v is not above 0 and at most 1", l.Factor)
	case n == 0 || math.Abs(l.Factor*1000-float64(n)) > 1e-6:
		return fmt.Errorf("factor: %v has more than three decimals", l.Factor)
	case l.Floor < 1 || l.Floor > maxMilli:
		return fmt.Errorf("floor: %d mCPU is not from 1 to %d", l.Floor, maxMilli)
	}
	return nil
}

func permille(factor float64) int64 { return int64(math.Round(factor * 1000)) }

// Rules are a Policy that was found valid.
type Rules struct {
	Policy
	permille int64
	tiers    []*policy.Policy
	ranges   bool // a rule asks for a pod's priority
}

// Compile checks a policy.
func Compile(p Policy) (*Rules, error) {
	r := &Rules{Policy: p, permille: permille(p.Factor)}
	for _, l := range append([]Lowering{{p.Factor, p.Floor}}, p.Before...) {
		if err := l.check(); err != nil {
			return nil, err
		}
	}
	switch {
	case len(p.Namespaces) == 0:
		return nil, fmt.Errorf("namespaces: there is none; name those that take part")
	case len(p.Tiers) == 0:
		return nil, fmt.Errorf("tiers: there is none; name standard, background, or both")
	}
	for _, name := range slices.Concat(p.Namespaces, p.Left) {
		if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
			return nil, fmt.Errorf("namespaces: %q: %s", name, faults[0])
		}
		if name == systemNamespace || name == ownNamespace {
			return nil, fmt.Errorf("namespaces: the requests of %s are never lowered; leave it out", name)
		}
	}
	for _, t := range p.Tiers {
		if t != tier.Standard && t != tier.Background {
			return nil, fmt.Errorf("tiers: requests of tier %v are never lowered; name standard, background, or both", t)
		}
	}
	for _, w := range p.Autoscaled {
		if len(validation.IsDNS1123Label(w.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(w.Name)) > 0 || !slices.Contains(scalable, w.Kind) {
			return nil, fmt.Errorf("autoscaled: %s %s/%s is none of %v with a namespace and a name", w.Kind, w.Namespace, w.Name, scalable)
		}
	}
	for _, from := range p.TierPolicies {
		compiled, err := policy.Compile(from)
		if err != nil {
			return nil, err
		}
		r.tiers = append(r.tiers, compiled)
		r.ranges = r.ranges || slices.ContainsFunc(from.Spec.Rules, func(rule v1alpha1.TierRule) bool { return rule.Priority != nil })
	}
	if r.tiers == nil {
		r.tiers = []*policy.Policy{nil} // without a policy a pod is standard, or what its label lowers it to
	}
	return r, nil
}

// scalable are the kinds that a HorizontalPodAutoscaler scales and whose pods are lowered otherwise.
var scalable = []string{"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"}

// factor is how the annotation names it.
func (r *Rules) factor() string { return strconv.FormatFloat(float64(r.permille)/1000, 'f', -1, 64) }

// lower is what becomes of a request, in mCPU. What is not above the floor stays, and so does the lack of a request.
func (r *Rules) lower(milli int64) int64 {
	if milli <= r.Floor {
		return milli
	}
	return max(r.Floor, (milli*r.permille+999)/1000)
}
