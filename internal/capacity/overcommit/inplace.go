package overcommit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"temper.dev/temper/api/v1alpha1"
)

// Step is a write that brings a running pod nearer to what it is to be.
type Step int

// The steps. The API server drops annotations from a resize, so that each of them is a write of its own.
const (
	Done   Step = iota
	Note        // set the annotations as those of Pod
	Resize      // set the CPU requests as those of Pod
)

// Change is the next step of a pod, and what it makes of the pod.
type Change struct {
	Step Step
	Pod  *corev1.Pod
	Left string // why nothing is done where something should be
	// Stale says that the annotations do not belong to the pod's requests, so that nothing can be given back.
	Stale bool
}

// Repair brings a pod that the policy missed to what it would have been admitted as. The original is noted before the
// resize, and the factor after it: a pod with an original and no factor is half-way, and no pod is lowered twice.
func (r *Rules) Repair(pod *corev1.Pod, in Namespace) Change {
	note, factor := pod.Annotations[OriginalAnnotation], pod.Annotations[FactorAnnotation]
	switch {
	case note != "" && factor != "" || ended(pod):
		return Change{}
	case note != "":
		stated := read(pod)
		original := stated.claiming(claims(note))
		if lowered := r.lowered(original); lowered.equal(stated) && record(original, lowered) == note {
			return annotated(pod, note, r.factor())
		}
	}
	plain := without(pod)
	admitted, outcome := r.Admit(plain, in)
	due := admitted.Annotations[OriginalAnnotation]
	switch {
	case outcome.Left == "" && note == "" && r.EnforcedOnly && !asks(pod):
		return Change{Left: "it does not ask for " + v1alpha1.OvercommitResource + ", and may be on a node where tiers are not enforced; make it anew"}
	case note != due || factor != "": // due is "" where the policy leaves the pod alone
		if why := inTheWay(pod, admitted, in); why != "" && note == "" {
			return Change{Left: why}
		}
		return annotated(pod, due, "")
	case outcome.Left != "":
		return Change{}
	}
	if why := inTheWay(pod, admitted, in); why != "" {
		return Change{Left: why}
	}
	return Change{Step: Resize, Pod: admitted}
}

// Restore gives a pod back what it asked for, and then removes the annotations. An original counts where a factor that the
// policy had makes of it what the pod requests, as on creation: nobody gets more than by asking for it.
func (r *Rules) Restore(pod *corev1.Pod, in Namespace) Change {
	note, factor := pod.Annotations[OriginalAnnotation], pod.Annotations[FactorAnnotation]
	if note == "" && factor == "" || ended(pod) {
		return Change{}
	}
	stated := read(pod)
	said := claims(note)
	if len(said) > 0 && stated.has(said) && stated.claiming(said).equal(stated) {
		return annotated(pod, "", "")
	}
	for _, as := range r.appliedAs(factor) {
		original := as.believe(stated, said)
		if record(original, stated) != note || original.equal(stated) {
			continue
		}
		restored := pod.DeepCopy()
		original.write(restored, stated)
		if why := inTheWay(pod, restored, in); why != "" {
			return Change{Left: why}
		}
		return Change{Step: Resize, Pod: restored}
	}
	return Change{Stale: true, Left: fmt.Sprintf("its original %q and factor %q do not belong to what it requests: it was resized, or another policy has lowered it", note, factor)}
}

// appliedAs are the rules that may have lowered a pod with this factor. Without one, a repair was interrupted.
func (r *Rules) appliedAs(factor string) (as []*Rules) {
	for _, l := range append([]Lowering{{r.Factor, r.Floor}}, r.Before...) {
		if factor == "" || factor == strconv.FormatFloat(l.Factor, 'f', -1, 64) {
			as = append(as, &Rules{Policy: Policy{Factor: l.Factor, Floor: l.Floor}, permille: permille(l.Factor)})
		}
	}
	return as
}

// asks is whether a pod asks for v1alpha1.OvercommitResource, as a resize cannot have it do.
func asks(pod *corev1.Pod) bool {
	_, does := pod.Spec.Containers[0].Resources.Limits[v1alpha1.OvercommitResource]
	return does
}

func ended(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// without is the pod without Temper's annotations, as it was before a scheduler chose its node.
func without(pod *corev1.Pod) *corev1.Pod {
	return unbound(annotated(pod, "", "").Pod)
}

func unbound(pod *corev1.Pod) *corev1.Pod {
	out := *pod
	out.Spec.NodeName = ""
	return &out
}

func annotated(pod *corev1.Pod, original, factor string) Change {
	out := pod.DeepCopy()
	annotations := map[string]string{}
	maps.Copy(annotations, pod.Annotations)
	for key, value := range map[string]string{OriginalAnnotation: original, FactorAnnotation: factor} {
		if delete(annotations, key); value != "" {
			annotations[key] = value
		}
	}
	out.Annotations = annotations
	return Change{Step: Note, Pod: out}
}

// claiming is what a pod would request if all that is claimed were so.
func (c cpu) claiming(claimed map[string]int64) cpu {
	c.requests = slices.Clone(c.requests)
	for i, name := range c.names {
		if claim, ok := claimed[name]; ok {
			c.requests[i] = claim
		}
	}
	if claim, ok := claimed[podKey]; ok {
		c.pod.request = claim
	}
	return c
}

// has says whether all that is claimed is of something that the pod has.
func (c cpu) has(claimed map[string]int64) bool {
	for name := range claimed {
		if name != podKey && !slices.Contains(c.names, name) || name == podKey && c.pod.request == none {
			return false
		}
	}
	return true
}

// inTheWay says why a pod cannot be resized without more becoming of it than that.
func inTheWay(pod, to *corev1.Pod, in Namespace) string {
	before, after := read(pod), read(to)
	for i, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if before.requests[i] != after.requests[i] && slices.Contains(container.ResizePolicy,
			corev1.ContainerResizePolicy{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}) {
			return fmt.Sprintf("a resize would restart container %s, as its resizePolicy asks for", container.Name)
		}
		for _, limits := range in.LimitRanges {
			for _, item := range limits.Spec.Limits {
				if item.Type == corev1.LimitTypeContainer && (lacks(container.Resources.Limits, item.Default) || lacks(container.Resources.Requests, item.DefaultRequest)) {
					return fmt.Sprintf("a resize would give container %s the defaults of LimitRange %s, which is younger than the pod", container.Name, limits.Name)
				}
			}
		}
	}
	return ""
}

func lacks(list, defaults corev1.ResourceList) bool {
	for name := range defaults {
		if _, ok := list[name]; !ok {
			return true
		}
	}
	return false
}

// scheduled is the CPU, in mCPU, that the scheduler counts for a pod on a node: the larger of what its spec says and what
// the kubelet has given it.
func scheduled(pod *corev1.Pod) int64 {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true})
	return requests.Cpu().MilliValue()
}
