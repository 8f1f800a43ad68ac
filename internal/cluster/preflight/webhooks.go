package preflight

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// webhook is what validating and mutating webhooks have in common.
type webhook struct {
	name, kind string
	rules      []admissionv1.RuleWithOperations
	failure    *admissionv1.FailurePolicyType
	namespaces *metav1.LabelSelector
	objects    *metav1.LabelSelector
	conditions []admissionv1.MatchCondition
	client     admissionv1.WebhookClientConfig
}

func (w webhook) String() string { return w.kind + " " + w.name }

func (c *cluster) webhooks() (all []webhook) {
	for _, config := range c.validating {
		for _, w := range config.Webhooks {
			all = append(all, webhook{config.Name + " (" + w.Name + ")", "ValidatingWebhookConfiguration", w.Rules, w.FailurePolicy, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions, w.ClientConfig})
		}
	}
	for _, config := range c.mutating {
		for _, w := range config.Webhooks {
			all = append(all, webhook{config.Name + " (" + w.Name + ")", "MutatingWebhookConfiguration", w.Rules, w.FailurePolicy, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions, w.ClientConfig})
		}
	}
	return all
}

// webhookFindings name webhooks that may keep the agents' pods from being made.
func (c *cluster) webhookFindings() (findings []Finding) {
	if !c.knows("validatingwebhookconfigurations", "mutatingwebhookconfigurations", "namespaces") {
		return nil
	}
	const name = "webhook"
	pod := c.temper.agentPod()
	namespace := labels.Merge(c.namespaces[c.temper.namespace], labels.Set{corev1.LabelMetadataName: c.temper.namespace})
	for _, w := range c.webhooks() {
		if w.failure != nil && *w.failure == admissionv1.Ignore || !w.sees(pod, namespace) {
			continue
		}
		found := fmt.Sprintf("%v is asked about the agents' pods, and refuses them while it does not answer (failurePolicy Fail)", w)
		if len(w.conditions) > 0 {
			found += ", unless its matchConditions leave them out"
		}
		findings = append(findings, warn(name, found, "have its namespaceSelector leave out namespace "+c.temper.namespace+", and see that its rules take a privileged pod"))
	}
	return orOK(findings, name, "none that fails closed is asked about the agents' pods")
}

// sees is whether a webhook is asked about a pod that is made in a namespace with these labels, by all but its conditions.
// A selector that is not valid selects all: the API server would not have taken it.
func (w webhook) sees(pod *corev1.Pod, namespace labels.Set) bool {
	attributes := admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), pod.Namespace, pod.Name,
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	asked := false
	for _, r := range w.rules {
		asked = asked || (&rules.Matcher{Rule: r, Attr: attributes}).Matches()
	}
	return asked && selects(w.namespaces, namespace) && selects(w.objects, pod.Labels)
}

func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || s.Matches(set)
}
