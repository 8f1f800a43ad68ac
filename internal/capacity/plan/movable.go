package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/snapshot"
)

// Annotations by which users say of a pod that it is not to be moved, or may be. Other programs have made them known, and
// who has set one for them means it for everybody.
const (
	doNotDisrupt = "karpenter.sh/do-not-disrupt" // "true", or for how long
	safeToEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	safeVolumes  = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes" // names, with commas
	mirror       = corev1.MirrorPodAnnotationKey
	controlPlane = "node-role.kubernetes.io/control-plane"
)

// Priorities from here on are Kubernetes' own (system-cluster-critical and above).
const systemPriority = 2_000_000_000

// starting are the taints, or beginnings of them, of nodes that are not ready for pods yet.
var starting = []string{
	"node.kubernetes.io/not-ready", "node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered",
	"node.cilium.io/agent-not-ready", "ebs.csi.aws.com/agent-not-ready", "efs.csi.aws.com/agent-not-ready",
	"startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/",
}

// leaving are the taints of nodes that somebody is taking away already.
var leaving = []string{
	"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/disrupted", "node.kubernetes.io/out-of-service",
}

// enforced says why a node does not count; "": it does. Without enforcement, nothing keeps lowered requests from costing a
// critical pod its CPU.
func enforced(node *v1alpha1.TemperNode) string {
	if node == nil {
		return "no agent of Temper reports for it"
	}
	c := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionEnforced)
	switch {
	case c == nil:
		return "its agent has not said yet whether the tiers are enforced"
	case c.Status != metav1.ConditionTrue:
		return strings.TrimSuffix(fmt.Sprintf("the tiers are not enforced on it: %s, %s", c.Reason, c.Message), ", ")
	}
	return ""
}

// nodeBlocks says what about a node itself keeps it; nothing: its pods decide.
func nodeBlocks(node *corev1.Node) (reasons []string) {
	if node.DeletionTimestamp != nil {
		reasons = append(reasons, "it is being deleted already")
	}
	if node.Spec.Unschedulable {
		reasons = append(reasons, "somebody has cordoned it")
	}
	if _, ok := node.Labels[controlPlane]; ok {
		reasons = append(reasons, "it runs the control plane (label "+controlPlane+")")
	}
	if !ready(node) {
		reasons = append(reasons, "it is not Ready")
	}
	for _, taint := range node.Spec.Taints {
		has := func(prefix string) bool { return strings.HasPrefix(taint.Key, prefix) }
		switch {
		case slices.ContainsFunc(starting, has):
			reasons = append(reasons, "it is still starting (taint "+taint.Key+")")
		case slices.ContainsFunc(leaving, has):
			reasons = append(reasons, "somebody is taking it away already (taint "+taint.Key+")")
		}
	}
	return reasons
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Stays is whether a pod belongs to its node, and ends with it: nobody has to move it.
func Stays(pod *corev1.Pod) bool {
	if _, ok := pod.Annotations[mirror]; ok {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// leaves is whether nobody has to move a pod: it belongs to its node, or is ending already.
func leaves(pod *corev1.Pod) bool { return Stays(pod) || pod.DeletionTimestamp != nil }

// Blocks says why a pod must not be evicted, whatever PodDisruptionBudgets allow; "": it may be.
func Blocks(pod *corev1.Pod) string { return podBlocks(pod, &budgets{}) }

// Forbids says why the eviction API would refuse a pod by these PodDisruptionBudgets; "": it would not. An error is of one
// whose selector is not valid.
func Forbids(pod *corev1.Pod, all []policyv1.PodDisruptionBudget) (string, error) {
	s := &snapshot.Snapshot{}
	for i := range all {
		s.PodDisruptionBudgets = append(s.PodDisruptionBudgets, &all[i])
	}
	b, err := newBudgets(s)
	if err != nil {
		return "", err
	}
	return b.forbid(pod), nil
}

// podBlocks says why a pod must not be evicted; "": it may be. The first reason is enough: who removes it sees the next.
func podBlocks(pod *corev1.Pod, budgets *budgets) string {
	allowed := pod.Annotations[safeToEvict] == "true"
	if v, ok := pod.Annotations[doNotDisrupt]; ok && v != "false" {
		return fmt.Sprintf("its annotation %s is %q", doNotDisrupt, v)
	}
	if pod.Annotations[safeToEvict] == "false" {
		return `its annotation ` + safeToEvict + ` is "false"`
	}
	if s := pod.Spec.SchedulerName; s != "" && s != corev1.DefaultSchedulerName {
		return fmt.Sprintf("scheduler %s places it, and nobody can foresee where", s)
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		return "it has resource claims, whose devices cannot be simulated"
	}
	if why := budgets.forbid(pod); why != "" {
		return why
	}
	if allowed {
		return ""
	}
	return unlessAllowed(pod)
}

// unlessAllowed are reasons that the annotation safe-to-evict overrules: the pod's owner knows what is lost.
func unlessAllowed(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return "it has no controller that would make it anew"
	case owner.Kind == "Job":
		return "its Job would start its work from the beginning"
	case pod.Spec.Priority != nil && *pod.Spec.Priority >= systemPriority:
		return "its priority is one of Kubernetes' own: the cluster may depend on it"
	}
	safe := strings.Split(pod.Annotations[safeVolumes], ",")
	for _, v := range pod.Spec.Volumes {
		local := v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory || v.Ephemeral != nil
		if local && !slices.Contains(safe, v.Name) {
			return fmt.Sprintf("what it has stored in volume %s would be lost", v.Name)
		}
	}
	return ""
}

// budgets are the PodDisruptionBudgets of a cluster, by namespace.
type budgets struct {
	of map[string][]budget
}

type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

func newBudgets(s *snapshot.Snapshot) (*budgets, error) {
	b := &budgets{map[string][]budget{}}
	for _, p := range s.PodDisruptionBudgets {
		selector, err := metav1.LabelSelectorAsSelector(p.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("PodDisruptionBudget %s/%s: its selector is not valid, which no API server admits: %w", p.Namespace, p.Name, err)
		}
		b.of[p.Namespace] = append(b.of[p.Namespace], budget{p, selector})
	}
	return b, nil
}

// over are the budgets that a pod is under.
func (b *budgets) over(pod *corev1.Pod) (found []*policyv1.PodDisruptionBudget) {
	for _, p := range b.of[pod.Namespace] {
		if p.selector.Matches(labels.Set(pod.Labels)) {
			found = append(found, p.PodDisruptionBudget)
		}
	}
	return found
}

// forbid says why the eviction API would refuse a pod; "": it would not, as long as only one pod is away at a time.
func (b *budgets) forbid(pod *corev1.Pod) string {
	over := b.over(pod)
	switch {
	case len(over) == 0:
		return ""
	case len(over) > 1:
		var names []string
		for _, p := range over {
			names = append(names, p.Name)
		}
		return fmt.Sprintf("it is under %d PodDisruptionBudgets (%s), and the eviction API takes no pod that is under more than one", len(over), strings.Join(names, ", "))
	}
	p := over[0]
	switch {
	case p.Status.ObservedGeneration < p.Generation:
		return fmt.Sprintf("the status of PodDisruptionBudget %s is of an earlier version of it", p.Name)
	case p.Status.DisruptionsAllowed < 1:
		return fmt.Sprintf("PodDisruptionBudget %s allows no disruption (%d of %d pods are healthy, %d must be)",
			p.Name, p.Status.CurrentHealthy, p.Status.ExpectedPods, p.Status.DesiredHealthy)
	}
	return ""
}
