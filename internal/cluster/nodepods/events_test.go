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
		what          string
		before, after []metav1.Condition
		told          int
	}{
		{"the first report", nil, starting, 0},
		{"as it should be from the first", nil, attached, 0},
		{"wrong from the first", nil, ejected, 1},
		{"attached", starting, attached, 0},
		{"ejected", attached, ejected, 1},
		{"still ejected", ejected, ejected, 0},
		{"attached again", ejected, attached, 1},
		{"refused at the start", starting, ejected, 1},
		{"stopped", attached, stopped, 0},
		{"started after a stop", stopped, attached, 0},
		{"told what it should be", unknown, attached, 0},
	} {
		if got := turned(c.before, c.after); len(got) != c.told {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
