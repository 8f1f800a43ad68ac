//go:build kubernetes

package kubernetes

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
)

// Which controller works says to Prometheus what the CapacityPolicy's status says, and nothing where there is none.
func TestControllerMetrics(t *testing.T) {
	c := newControlled(t, 2)
	inForce(t)
	address := freePort(t, "127.0.0.1").String()
	c.lowering(nil, "--metrics", address)
	scraped := func(want ...string) {
		t.Helper()
		var got []string
		eventually(t, "the metrics are "+strings.Join(want, ", "), func() bool {
			got = ofOvercommit(address)
			return slices.Equal(got, want)
		})
	}
	scraped(`temper_overcommit_factor 0.5`, `temper_overcommit_fit_nodes 2`, `temper_overcommit_guarded{reason="Calm"} 0`, `temper_overcommit_nodes 2`, `temper_overcommit_ready{reason="InForce"} 1`)
	c.report(false, 1, 0)
	scraped(`temper_overcommit_factor 1`, `temper_overcommit_fit_nodes 0`, `temper_overcommit_guarded{reason="NotEnforced"} 1`, `temper_overcommit_nodes 2`, `temper_overcommit_ready{reason="Guarded"} 0`)
	if err := cluster.Delete(t.Context(), &v1alpha1.CapacityPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.CapacityPolicyName}}); err != nil {
		t.Fatal(err)
	}
	scraped()
}

// ofOvercommit are the lines of Temper's own.
func ofOvercommit(address string) (lines []string) {
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return []string{err.Error()}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "temper_") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}
