package nodepods

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/node/agent"
)

// Operators are told when a node is not enforced any more, and when it is again; not that an agent starts or ends.
func TestTurned(t *testing.T) {
	enforced := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: status, Reason: reason}}
	}
	starting, attached := enforced("False", reasonStarting), enforced("True", reasonAttached)
	ejected, stopped := enforced("False", "Ejected"), enforced("False", reasonStopped)
	unknown := enforced("False", agent.NotKnown)
	for _, c := range []struct {
		name          string
		before, after []metav1.Condition
		told          int
	}{
		{name: "the first report", after: starting},
		{name: "as it should be from the first", after: attached},
		{name: "wrong from the first", after: ejected, told: 1},
		{name: "attached", before: starting, after: attached},
		{name: "ejected", before: attached, after: ejected, told: 1},
		{name: "still ejected", before: ejected, after: ejected},
		{name: "attached again", before: ejected, after: attached, told: 1},
		{name: "refused at the start", before: starting, after: ejected, told: 1},
		{name: "stopped", before: attached, after: stopped},
		{name: "started after a stop", before: stopped, after: attached},
		{name: "told what it should be", before: unknown, after: attached},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := turned(c.before, c.after); len(got) != c.told {
				t.Errorf("got %v, want %d of them", got, c.told)
			}
		})
	}
}
