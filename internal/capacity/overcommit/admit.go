package overcommit

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"temper.dev/temper/internal/capacity/snapshot"
	"temper.dev/temper/internal/cluster/policy"
)

const (
	maxCores = 1_000_000
	maxMilli = maxCores * 1000
	// A pod with more containers could use up what the API server spends on a policy. Then it would be unclear what holds.
	maxContainers = 64
	// No true annotation is longer: 65 entries as "NAME=1000000000m,". A long one, too, could use up what the API server spends.
	maxAnnotation = 65 * (63 + 13)
	// podKey is the pod's own request in OriginalAnnotation: no container has that name.
	podKey = "/"
	none   = -1 // no request, or no limit
)

// Namespace is what of a namespace bears on its pods' requests.
type Namespace struct {
	Name        string
	Labels      labels.Set
	LimitRanges []corev1.LimitRange
}

// Outcome is what became of a pod's requests.
type Outcome struct {
	Left   string // why the pod was left alone; "": its requests were lowered
	Before int64  // mCPU that a scheduler counts, as it was asked for
	After  int64  // as it was admitted
}

// Admit is the pod as it would be admitted in the namespace. It takes the API server's defaults for granted where the pod
// does not have them yet: a container without a request has its limit's.
func (r *Rules) Admit(pod *corev1.Pod, in Namespace) (*corev1.Pod, Outcome) {
	if !slices.Contains(r.Namespaces, in.Name) {
		stated := read(pod)
		return pod, Outcome{"namespace " + in.Name + " does not take part", stated.total(), stated.total()}
	}
	out := pod.DeepCopy()
	delete(out.Annotations, OriginalAnnotation)
	delete(out.Annotations, FactorAnnotation)
	stated := read(pod)
	if stated.pod.request != none && milli(out.Spec.Resources.Requests) == none {
		setCPU(out.Spec.Resources, stated.pod.request)
	}
	leave := func(format string, args ...any) (*corev1.Pod, Outcome) {
		return out, Outcome{fmt.Sprintf(format, args...), stated.total(), stated.total()}
	}
	if stated.beyondMeasure() {
		return leave("it has more than %d containers, or asks for more than %d CPUs", maxContainers, maxCores)
	}
	original := r.believe(stated, claims(pod.Annotations[OriginalAnnotation]))
	if why := r.exempt(pod, in, original); why != "" {
		return leave("%s", why)
	}
	lowered := r.lowered(original)
	if lowered.equal(original) {
		return leave("no CPU request of it is above the floor of %d mCPU, or the factor is 1", r.Floor)
	}
	for _, limits := range in.LimitRanges {
		if why := refuses(limits, lowered); why != "" {
			original.write(out, stated)
			if r.EnforcedOnly {
				askFor(&out.Spec.Containers[0].Resources, 0)
			}
			return out, Outcome{fmt.Sprintf("LimitRange %s would refuse it: %s", limits.Name, why), original.total(), original.total()}
		}
	}
	lowered.write(out, stated)
	if r.EnforcedOnly {
		askFor(&out.Spec.Containers[0].Resources, 1)
	}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, OriginalAnnotation, record(original, lowered))
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, FactorAnnotation, r.factor())
	return out, Outcome{"", original.total(), lowered.total()}
}

// exempt says why a pod's requests are not to be lowered, whatever they are.
func (r *Rules) exempt(pod *corev1.Pod, in Namespace, original cpu) string {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return "it is a static pod: its kubelet runs it as its file says"
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && !slices.Contains(ordinary, ownerKey(owner)) {
		if owner.Kind == "DaemonSet" {
			return "it is of a DaemonSet: it is on its node whatever it requests"
		}
		return fmt.Sprintf("it is owned by %s %s: an operator may expect its requests as it wrote them", owner.Kind, owner.Name)
	}
	if w := workload(pod, in.Name); slices.Contains(r.Autoscaled, w) {
		return fmt.Sprintf("%s %s is scaled by CPU utilisation, which is a share of its requests, or was named as exempt", w.Kind, w.Name)
	}
	if r.EnforcedOnly && pod.Spec.NodeName != "" {
		return "it was made for one node, whose resources nobody looks at"
	}
	if original.guaranteed() {
		return "its QoS class is Guaranteed, and would change"
	}
	if pod.Spec.Priority == nil && r.ranges {
		return "its priority is not known yet, and a TierPolicy asks for it"
	}
	classed := pod.DeepCopy()
	classed.Status.QOSClass = corev1.PodQOSBurstable // one of BestEffort has nothing to lower
	for _, p := range r.tiers {
		if v := p.Tier(classed, &policy.Namespace{Name: in.Name, Labels: in.Labels}); !slices.Contains(r.Tiers, v.Tier) {
			return fmt.Sprintf("its tier is %v (%s)", v.Tier, v.Reason)
		}
	}
	return ""
}

// ordinary are the owners whose pods are lowered, as pods without an owner are.
var ordinary = []string{"apps/ReplicaSet", "apps/StatefulSet", "batch/Job", "/ReplicationController"}

func ownerKey(owner *metav1.OwnerReference) string {
	version, _ := schema.ParseGroupVersion(owner.APIVersion)
	return version.Group + "/" + owner.Kind
}

// workload is what an autoscaler of the pod would name.
func workload(pod *corev1.Pod, namespace string) snapshot.Workload {
	w := (&snapshot.Snapshot{}).Workloads()(pod)
	w.Namespace = namespace // a pod of a template has none
	return w
}

// lowered is what becomes of all requests. The pod's own is never below what its containers come to: the API server would
// refuse that.
func (r *Rules) lowered(original cpu) cpu {
	c := original
	c.requests = nil
	for _, request := range original.requests {
		c.requests = append(c.requests, r.lower(request))
	}
	c.pod.request = r.lowerPod(original.pod.request, c)
	return c
}

func (r *Rules) lowerPod(request int64, lowered cpu) int64 {
	return min(request, max(r.lower(request), lowered.aggregate(lowered.requests)))
}

// believe is what a pod asked for before it was lowered. An annotation counts where the policy makes of what it says what
// the pod requests: then who wrote it has what he would have got by asking. Any other counts for nothing.
func (r *Rules) believe(stated cpu, claimed map[string]int64) cpu {
	c := stated
	c.requests = slices.Clone(stated.requests)
	credible := func(claim, limit int64) bool { return limit == none || claim <= limit }
	for i, name := range c.names {
		if claim := claimed[name]; claim > c.requests[i] && r.lower(claim) == c.requests[i] && credible(claim, c.limits[i]) {
			c.requests[i] = claim
		}
	}
	if claim := claimed[podKey]; claim > c.pod.request && claim >= c.aggregate(c.requests) &&
		r.lowerPod(claim, r.lowered(c)) == c.pod.request && credible(claim, c.pod.limit) {
		c.pod.request = claim
	}
	if c.guaranteed() { // such a pod is never lowered
		return stated
	}
	return c
}

// refuses says what a LimitRange has against requests that were lowered. A maximum is of limits, and those stay.
func refuses(limits corev1.LimitRange, c cpu) string {
	for _, l := range limits.Spec.Limits {
		least, ratio := milli(l.Min), milli(l.MaxLimitRequestRatio)
		against := func(what string, request, limit int64) string {
			switch {
			case request >= 0 && request < least:
				return fmt.Sprintf("%s would request %d mCPU, and the minimum is %d", what, request, least)
			// In floating point, as the API server does it.
			case ratio != none && request > 0 && limit > 0 && float64(limit)/float64(request)*1000 > float64(ratio):
				return fmt.Sprintf("%s would have a limit of %d mCPU and request %d, which is beyond the ratio", what, limit, request)
			}
			return ""
		}
		switch l.Type {
		case corev1.LimitTypeContainer:
			for i, name := range c.names {
				if why := against("container "+name, c.requests[i], c.limits[i]); why != "" {
					return why
				}
			}
		case corev1.LimitTypePod:
			if why := against("the pod", c.total(), c.totalLimit()); why != "" {
				return why
			}
		}
	}
	return ""
}
