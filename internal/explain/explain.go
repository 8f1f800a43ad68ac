package explain

import (
	"fmt"
	"io"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"temper.dev/temper/internal/policy"
)

// Answer is the tier that a pod will be in, and why.
type Answer struct {
	Name string `json:"name"`
	policy.Verdict
	// What is not known from the manifests alone, and might change the answer.
	Unknown string `json:"unknown,omitempty"`
}

// Kubernetes makes these classes itself.
var builtIn = map[string]int32{"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}

// Answers is of each pod in the manifests what becomes of it on a node with these labels.
func (m *Manifests) Answers(node labels.Set) []Answer {
	answers := []Answer{}
	applies := policy.Select(m.Policies, node)
	for _, p := range m.Pods {
		defaultRequests(p.pod)
		unknown := m.resolvePriority(p)
		a := Answer{Name: p.Name, Verdict: applies.Tier(p.pod)}
		if a.Unresolved {
			a.Unknown = unknown
		}
		answers = append(answers, a)
	}
	return answers
}

// defaultRequests does what the API server does to pods as they are made: who has a limit and no request asks for the
// limit. The QoS class follows from it.
func defaultRequests(pod *corev1.Pod) {
	fill := func(r *corev1.ResourceRequirements) {
		for name, limit := range r.Limits {
			if _, asked := r.Requests[name]; !asked {
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				r.Requests[name] = limit
			}
		}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			fill(&containers[i].Resources)
		}
	}
	if pod.Spec.Resources != nil {
		fill(pod.Spec.Resources)
	}
}

// resolvePriority does what the API server's admission does: it gives a pod the value of its class. It returns what
// cannot be known.
func (m *Manifests) resolvePriority(p Pod) (unknown string) {
	if p.pod.Spec.Priority != nil {
		return ""
	}
	name := p.pod.Spec.PriorityClassName
	if value, ok := builtIn[name]; ok {
		p.pod.Spec.Priority = &value
		return ""
	}
	for _, class := range m.Classes {
		if class.Name == name || name == "" && class.GlobalDefault {
			p.pod.Spec.PriorityClassName, p.pod.Spec.Priority = class.Name, &class.Value
			return ""
		}
	}
	if name != "" {
		return fmt.Sprintf("the value of PriorityClass %s, which no file has: rules by priority are passed over", name)
	}
	p.pod.Spec.Priority = new(int32)
	return ""
}

// Write writes answers as a table, and below it what was refused and what is not known.
func Write(w io.Writer, answers []Answer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PODS OF\tTIER\tPOLICY\tRULE\tBECAUSE OF")
	for _, a := range answers {
		fmt.Fprintf(table, "%s\t%v\t%s\t%s\t%s\n", a.Name, a.Tier, dash(a.Policy), dash(a.Rule), a.Reason)
	}
	_ = table.Flush()
	for _, a := range answers {
		if a.Refused != "" {
			fmt.Fprintf(w, "%s: %s\n", a.Name, a.Refused)
		}
		if a.Unknown != "" {
			fmt.Fprintf(w, "%s: not known: %s\n", a.Name, a.Unknown)
		}
	}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
