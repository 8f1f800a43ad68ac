package incluster

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/capacity/overcommit"
)

// What became of a pod.
const (
	StateLowered    = "lowered"
	StateRestored   = "restored"
	StateDue        = "to do" // a dry run
	StateLeft       = "left alone"
	StateStale      = "changed" // its annotations do not belong to its requests
	StateNoRoom     = "no room"
	StateDeferred   = "deferred"   // its node has no room for it now
	StateInfeasible = "infeasible" // its node can never do it
	StateUnanswered = "unanswered" // its kubelet has not said yet
	StateFailed     = "failed"
)

// Outcome is what became of one pod.
type Outcome struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	State     string `json:"state"`
	Why       string `json:"why,omitempty"`
}

func outcome(pod *corev1.Pod, state, why string) Outcome {
	return Outcome{pod.Namespace, pod.Name, pod.Spec.NodeName, state, why}
}

func leftAlone(pod *corev1.Pod, change overcommit.Change) Outcome {
	if change.Stale {
		return outcome(pod, StateStale, change.Left)
	}
	return outcome(pod, StateLeft, change.Left)
}

// Outcomes are of many pods, in the order of their names.
type Outcomes []Outcome

// Count is how many are in one of the states.
func (o Outcomes) Count(states ...string) (n int) {
	for _, one := range o {
		if slices.Contains(states, one.State) {
			n++
		}
	}
	return n
}

// Write prints them as a table.
func (o Outcomes) Write(w io.Writer) {
	if len(o) == 0 {
		return
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "NAMESPACE\tPOD\tNODE\tSTATE\tWHY")
	for _, one := range o {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", one.Namespace, one.Name, one.Node, one.State, host.Printable(one.Why))
	}
	out.Flush()
}

func sorted(o Outcomes) Outcomes {
	slices.SortStableFunc(o, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return o
}
