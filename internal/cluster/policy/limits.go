package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/node/config"
)

// defaultPodLimits are the modes that pods may ask for where a policy does not say: with neither a pod uses more than
// its limit.
var defaultPodLimits = []string{config.LimitsPaced, config.LimitsFreeze}

// Limits is how a pod's CPU limits are kept, and why.
type Limits struct {
	Mode   string `json:"mode"` // "": as the kernel does
	Own    bool   `json:"own"`  // the pod's own, whatever the node's is
	Reason string `json:"reason"`
}

func (l Limits) String() string { return fmt.Sprintf("%s (%s)", l.Mode, l.Reason) }

// OwnMode is the pod's own mode; "": it has the node's.
func (l Limits) OwnMode() string {
	if l.Own {
		return l.Mode
	}
	return ""
}

func checkPodLimits(modes []string) error {
	for i, mode := range modes {
		switch {
		case !slices.Contains(config.PodLimits, mode):
			return fmt.Errorf("%q is none of %s", mode, strings.Join(config.PodLimits, ", "))
		case slices.Contains(modes[:i], mode):
			return fmt.Errorf("%q is there twice", mode)
		}
	}
	return nil
}

// limits is how limits are kept on the policy's nodes.
func (p *Policy) limits() Limits {
	if p == nil {
		return Limits{Reason: "no policy is for this node"}
	}
	_, _, mode := p.Modes()
	return Limits{Mode: mode, Reason: "policy"}
}

// ownLimits gives a pod the mode that its label asks for, if the policy grants it.
func (p *Policy) ownLimits(v *Verdict, pod *corev1.Pod) {
	asked, labelled := pod.Labels[v1alpha1.LimitsLabel]
	if !labelled {
		return
	}
	switch {
	case !slices.Contains(config.PodLimits, asked):
		v.refuse("label %s: %q is none of %s", v1alpha1.LimitsLabel, asked, strings.Join(config.PodLimits, ", "))
	case p == nil: // the node is the kernel's own scheduler's
		v.refuse("label %s asks for %s; no policy is for this node", v1alpha1.LimitsLabel, asked)
	case v.Limits.Mode == config.LimitsIgnore:
		v.refuse("label %s asks for %s; by policy %s no limits are kept on this node", v1alpha1.LimitsLabel, asked, p.Name)
	case !slices.Contains(p.podLimits(), asked):
		v.refuse("label %s asks for %s, which podLimits of policy %s does not list", v1alpha1.LimitsLabel, asked, p.Name)
	default:
		v.Limits = Limits{Mode: asked, Own: true, Reason: "label " + v1alpha1.LimitsLabel}
	}
}

func (p *Policy) podLimits() []string {
	if modes := p.from.Spec.PodLimits; modes != nil {
		return modes
	}
	return defaultPodLimits
}
