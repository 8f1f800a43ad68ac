package preflight

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	quota "k8s.io/apiserver/pkg/quota/v1"
	core "k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	podquota "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/utils/clock"

	"temper.dev/temper/internal/cluster/fleet"
)

// podSecurity is a namespace's label that says which pods the API server takes there.
const podSecurity = "pod-security.kubernetes.io/enforce"

// namespaceFindings are about what would refuse the agents' pods in their namespace.
func (c *cluster) namespaceFindings(groups []Group) []Finding {
	pod := c.temper.agentPod()
	return slices.Concat(c.podSecurityFindings(), c.limitFindings(pod), c.quotaFindings(pod, groups))
}

func (c *cluster) podSecurityFindings() []Finding {
	if !c.knows("namespaces") {
		return nil
	}
	const name = "pod-security"
	namespace := c.temper.namespace
	set, exists := c.namespaces[namespace]
	if !exists {
		return []Finding{warn(name, "namespace "+namespace+" is not there; made by Helm it has no label "+podSecurity+", and the API server's own default holds",
			"make it first: kubectl create namespace "+namespace+" && "+privileged(namespace))}
	}
	switch level, labelled := set[podSecurity]; {
	case !labelled:
		return []Finding{warn(name, "namespace "+namespace+" has no label "+podSecurity+", and the API server's own default holds", privileged(namespace))}
	case level != "privileged":
		return []Finding{fail(name, fmt.Sprintf("namespace %s is labelled %s: %s, and the agent takes the node's network, processes and folders", namespace, podSecurity, level),
			privileged(namespace)+" --overwrite, or choose another namespace")}
	}
	return ok(name, "namespace "+namespace+" takes privileged pods")
}

func privileged(namespace string) string {
	return "kubectl label namespace " + namespace + " " + podSecurity + "=privileged"
}

// limitFindings fill the pod in with what LimitRanges give it, and say whether they take it then.
func (c *cluster) limitFindings(pod *corev1.Pod) (findings []Finding) {
	if !c.knows("limitranges") {
		return nil
	}
	const name = "limit-range"
	internal := &core.Pod{}
	if err := corev1conversion.Convert_v1_Pod_To_core_Pod(pod, internal, nil); err != nil {
		return []Finding{{name, Unknown, "the agent's pod cannot be tried: " + err.Error(), "report this"}}
	}
	for i := range c.limits {
		_ = limitranger.PodMutateLimitFunc(&c.limits[i], internal) // it returns no error
	}
	for i := range c.limits {
		if err := limitranger.PodValidateLimitFunc(&c.limits[i], internal); err != nil {
			findings = append(findings, fail(name, fmt.Sprintf("LimitRange %s/%s refuses the agent's pod: %v", c.temper.namespace, c.limits[i].Name, err),
				"change the LimitRange, or the chart's value resources"))
		}
	}
	if err := corev1conversion.Convert_core_Pod_To_v1_Pod(internal, pod, nil); err != nil {
		return append(findings, Finding{name, Unknown, "the agent's pod cannot be tried: " + err.Error(), "report this"})
	}
	return orOK(findings, name, fmt.Sprintf("none of %d in namespace %s refuses the agent's pod", len(c.limits), c.temper.namespace))
}

// quotaFindings say whether ResourceQuotas have room for the agents that are not there yet.
func (c *cluster) quotaFindings(pod *corev1.Pod, groups []Group) (findings []Finding) {
	if !c.knows("resourcequotas", "limitranges") {
		return nil
	}
	const name = "quota"
	evaluator := podquota.NewPodEvaluator(nil, clock.RealClock{})
	each, err := evaluator.Usage(pod)
	if err != nil {
		return []Finding{{name, Unknown, "the agent's pod cannot be counted: " + err.Error(), "report this"}}
	}
	wanted := max(0, agents(groups)-c.agentsThere())
	covered := false
	for _, q := range c.quotas {
		if match, err := evaluator.Matches(&q, pod); err != nil || !match {
			continue
		}
		covered = covered || ofClass(q)
		where := fmt.Sprintf("ResourceQuota %s/%s", q.Namespace, q.Name)
		if err := evaluator.Constraints(evaluator.MatchingResources(quota.ResourceNames(q.Spec.Hard)), pod); err != nil {
			findings = append(findings, fail(name, where+" refuses the agent's pod: "+err.Error(), "set it in the chart's value resources, or take the quota away"))
			continue
		}
		if fit, of := room(q, each); fit < int64(wanted) {
			findings = append(findings, fail(name, fmt.Sprintf("%s has room for %d of %d agents: %s", where, fit, wanted, of), "raise it, or choose another namespace"))
		}
	}
	if gke := c.onGKE(); gke != "" && !covered && c.temper.namespace != "kube-system" {
		class := c.temper.agent.Spec.Template.Spec.PriorityClassName
		findings = append(findings, warn(name, fmt.Sprintf("%s, where pods of %s outside kube-system need a ResourceQuota for that class", gke, class),
			fmt.Sprintf("set the chart's value resourceQuota.create, or make a ResourceQuota in %s whose scopeSelector is PriorityClass In [%s], with room for %d pods", c.temper.namespace, class, wanted)))
	}
	return orOK(findings, name, fmt.Sprintf("none of %d in namespace %s is in the way", len(c.quotas), c.temper.namespace))
}

// room is how many more pods fit in a quota, and which resource is the scarcest.
func room(q corev1.ResourceQuota, each corev1.ResourceList) (fit int64, of corev1.ResourceName) {
	fit = math.MaxInt64
	for _, resource := range sets.List(sets.KeySet(q.Spec.Hard)) {
		left, takes := q.Spec.Hard[resource], each[resource]
		left.Sub(q.Status.Used[resource])
		if takes.IsZero() {
			continue
		}
		if n := max(0, left.MilliValue()/takes.MilliValue()); n < fit {
			fit, of = n, resource
		}
	}
	return fit, of
}

// ofClass is whether a quota is for pods by their PriorityClass.
func ofClass(q corev1.ResourceQuota) bool {
	return slices.Contains(q.Spec.Scopes, corev1.ResourceQuotaScopePriorityClass) ||
		q.Spec.ScopeSelector != nil && slices.ContainsFunc(q.Spec.ScopeSelector.MatchExpressions, func(r corev1.ScopedResourceSelectorRequirement) bool {
			return r.ScopeName == corev1.ResourceQuotaScopePriorityClass
		})
}

// onGKE says by which node the cluster is known to be one of GKE; "": by none.
func (c *cluster) onGKE() string {
	for i := range c.nodes {
		if v := c.nodes[i].Status.NodeInfo.KubeletVersion; strings.Contains(v, "-gke.") {
			return "this is GKE, by the kubelet of node " + c.nodes[i].Name
		}
	}
	return ""
}

// agentsThere is how many agents' pods the namespace has.
func (c *cluster) agentsThere() (n int) {
	agents := labels.SelectorFromSet(labels.Set(fleet.Agents))
	for i := range c.pods {
		if p := &c.pods[i]; p.Namespace == c.temper.namespace && agents.Matches(labels.Set(p.Labels)) {
			n++
		}
	}
	return n
}
