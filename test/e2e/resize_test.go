//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodestatus "temper.dev/temper/internal/node/status"
)

// A pod whose CPU limit is changed while it runs keeps its tier, and the scheduler keeps the new limit.
func TestResize(t *testing.T) {
	awaitEnforced(t, metav1.ConditionTrue)
	pod := podOf("kube-system", "resized", forever)
	pod.Spec.PriorityClassName = "temper-critical"
	// Not guaranteed: the kubelet does not resize such pods where its CPU manager is static.
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources("20m", "20Mi"), Limits: resources("500m", "20Mi")}
	runPod(t, pod)
	awaitTier(t, pod, "critical")
	awaitLimits(t, pod, 0.5)

	for _, cpu := range []string{"750m", "250m"} {
		patch := client.RawPatch(types.StrategicMergePatchType,
			fmt.Appendf(nil, `{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"%s"}}}]}}`, cpu))
		if err := cluster.SubResource("resize").Patch(t.Context(), pod, patch); err != nil {
			t.Fatal(err)
		}
		want := pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU]
		eventually(t, "the kubelet has resized the pod to "+cpu, func() (bool, string) {
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
				return false, err.Error()
			}
			now := pod.Status.ContainerStatuses[0]
			return now.Resources != nil && now.Resources.Limits.Cpu().Equal(want), fmt.Sprintf("%+v", pod.Status.Conditions)
		})
		awaitLimits(t, pod, float64(want.MilliValue())/1000)
		awaitTier(t, pod, "critical")
	}
	if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("the container was started anew, %d times", n)
	}
	TestAgentEnforces(t)
}

// awaitLimits awaits that the scheduler keeps so many CPUs for the pod's cgroup and for its container's.
func awaitLimits(t *testing.T, pod *corev1.Pod, cpus float64) {
	t.Helper()
	onNode(t, fmt.Sprintf("the scheduler keeps %s at %g CPUs", pod.Name, cpus), func() (bool, string) {
		node, err := nodeStatus(t)
		var kept []float64
		for _, l := range node.Limits {
			if strings.Contains(l.Cgroup, inCgroup(pod)) {
				kept = append(kept, l.CPUs)
			}
		}
		return slices.Equal(kept, []float64{cpus, cpus}), fmt.Sprint(kept, err)
	})
}

// nodeStatus is what 'temper status' says on the node.
func nodeStatus(t *testing.T) (s nodestatus.Status, err error) {
	t.Helper()
	out, err := execute(t, release, agentPod(t), "/temper", "status", "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	return s, err
}
