package explain

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/labels"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/policy"
)

// Answer is the tier that a pod will be in, and why.
type Answer struct {
	Name string `json:"name"`
	policy.Verdict
	// What is not known from the manifests alone, and might change the answer.
	Unknown []string `json:"unknown,omitempty"`
	// Of a cluster's pod, whether its node's agent says that it is in this tier, and that the tiers are enforced: "yes",
	// else why not.
	InForce string `json:"in_force,omitempty"`
	// Of a cluster's critical pod, up to where critical work on its node comes first, and what it adds to that.
	Reservation string `json:"reservation,omitempty"`
}

// Answers is of each pod in the manifests what becomes of it: on the node that it is bound to, where the manifests have
// that, else on one with these labels.
func (m *Manifests) Answers(node labels.Set) ([]Answer, error) {
	var policies []*policy.Policy
	for _, from := range m.policies {
		p, err := policy.Compile(from)
		if err != nil {
			return nil, err
		}
		policies = append(policies, p)
	}
	var answers []Answer
	for _, p := range m.pods {
		answers = append(answers, m.answer(p, policies, node))
	}
	if len(answers) == 0 {
		return nil, errors.New("there is nothing in the files that makes pods")
	}
	return answers, nil
}

func (m *Manifests) answer(p pod, policies []*policy.Policy, node labels.Set) Answer {
	a := Answer{Name: p.name, Unknown: m.admit(p.Pod)}
	on, known := m.nodes[p.Spec.NodeName]
	if !known {
		on = node
	}
	if p.Spec.NodeName != "" && !known && len(node) == 0 {
		a.Unknown = append(a.Unknown, fmt.Sprintf("the labels of node %s, which no file has", p.Spec.NodeName))
	}
	applies := policy.Select(policies, on)
	in := m.namespace(p.Namespace)
	a.Verdict = applies.Tier(p.Pod, in)
	if unlabelled := applies.Tier(p.Pod, &policy.Namespace{Name: p.Namespace}); in == nil && unlabelled.Tier != a.Tier {
		a.Unknown = append(a.Unknown, fmt.Sprintf("whether its namespace is labelled %s: %v; without, it is %v", v1alpha1.HighestTierLabel, a.Tier, unlabelled.Tier))
	}
	if a.Unresolved {
		a.Unknown = append(a.Unknown, fmt.Sprintf("the value of PriorityClass %s, which no file has", p.Spec.PriorityClassName))
	}
	return a
}

// namespace is what the files say of a namespace; nil: nothing.
func (m *Manifests) namespace(name string) *policy.Namespace {
	its, known := m.spaces[name]
	if !known {
		return nil
	}
	return &policy.Namespace{Name: name, Labels: its}
}

// Write writes answers as a table, and below it what is reserved, what was refused and what is not known.
func Write(w io.Writer, answers []Answer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	ofCluster := slices.ContainsFunc(answers, func(a Answer) bool { return a.InForce != "" })
	head := "PODS OF\tTIER\tPOLICY\tRULE\tBECAUSE OF\tLIMITS"
	if ofCluster {
		head += "\tIN FORCE"
	}
	fmt.Fprintln(table, head)
	for _, a := range answers {
		fmt.Fprintf(table, "%s\t%v\t%s\t%s\t%s\t%s", a.Name, a.Tier, dash(a.Policy), dash(a.Rule), a.Reason, limits(a.Limits))
		if ofCluster {
			fmt.Fprintf(table, "\t%s", dash(a.InForce))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
	for _, a := range answers {
		if a.Reservation != "" {
			fmt.Fprintf(w, "%s: %s\n", a.Name, a.Reservation)
		}
		if a.Refused != "" {
			fmt.Fprintf(w, "%s: %s\n", a.Name, a.Refused)
		}
		if len(a.Unknown) > 0 {
			fmt.Fprintf(w, "%s: not known: %s\n", a.Name, strings.Join(a.Unknown, "; "))
		}
	}
}

func limits(l policy.Limits) string {
	if l.Mode == "" {
		return "-"
	}
	return l.String()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
