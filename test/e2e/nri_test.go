//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// registered is what the agent says once the runtime has taken it.
const registered = "the container runtime says when containers start"

// containerd tells the agent when containers start.
func TestRuntimeTellsTheAgent(t *testing.T) {
	awaitEnforced(t, metav1.ConditionTrue)
	awaitSaid(t, registered+`" runtime="containerd 2`, 1)
}

// awaitSaid awaits that the agent has said something so many times since it was started, and returns all that it said.
func awaitSaid(t *testing.T, text string, times int) (log string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the agent has said %q (%d)", text, times), func() (bool, string) {
		var err error
		log, err = logOf(t, release, agentPod(t))
		return strings.Count(log, text) >= times, fmt.Sprint(log, err)
	})
	return log
}
