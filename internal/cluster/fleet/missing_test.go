package fleet

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of an agent that does not report, or is not ready, what is known of its pod is told; of others nothing.
func TestFault(t *testing.T) {
	pod := func(phase corev1.PodPhase, ready bool, waiting string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "temper-agent-x"}, Status: corev1.PodStatus{Phase: phase}}
		if ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if waiting != "" {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waiting}}}}
		}
		return p
	}
	evicted := pod(corev1.PodFailed, false, "")
	evicted.Status.Reason = "Evicted"
	set := func(selector map[string]string) []appsv1.DaemonSet {
		s := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "temper-agent"}}
		s.Spec.Template.Spec.NodeSelector = selector
		return []appsv1.DaemonSet{s}
	}
	everywhere, elsewhere := set(nil), set(map[string]string{"kubernetes.io/arch": "amd64"})
	for _, c := range []struct {
		what  string
		stale bool
		pods  []corev1.Pod
		sets  []appsv1.DaemonSet
		want  string
	}{
		{"all is well", false, []corev1.Pod{pod(corev1.PodRunning, true, "")}, everywhere, ""},
		{"it cannot reach the API server", true, []corev1.Pod{pod(corev1.PodRunning, true, "")}, everywhere, ""},
		{"one that ends beside one that is ready", false, []corev1.Pod{pod(corev1.PodRunning, true, ""), pod(corev1.PodRunning, false, "")}, everywhere, ""},
		{"outside a pod", false, nil, nil, ""},
		{"does worse than before", false, []corev1.Pod{pod(corev1.PodRunning, false, "")}, everywhere, "agent's pod s/temper-agent-x is not ready: its log says why"},
		{"no image", true, []corev1.Pod{pod(corev1.PodPending, false, "ImagePullBackOff")}, everywhere, "agent's pod s/temper-agent-x is not ready: ImagePullBackOff"},
		{"not started", true, []corev1.Pod{pod(corev1.PodPending, false, "")}, everywhere, "agent's pod s/temper-agent-x is not ready: Pending"},
		{"evicted", true, []corev1.Pod{evicted}, everywhere, "agent's pod s/temper-agent-x is not ready: Evicted"},
		{"no DaemonSet", true, nil, nil, "no agent's pod is there, and no DaemonSet of agents is"},
		{"another architecture", true, nil, elsewhere, "no agent's pod is there: DaemonSet s/temper-agent selects other nodes"},
		{"a taint", true, nil, everywhere, "no agent's pod is there: 'kubectl describe daemonset -n s temper-agent' and the node's taints say why"},
	} {
		a := agents{sets: c.sets, pods: map[string][]corev1.Pod{"n": c.pods}, nodes: []metav1.PartialObjectMetadata{
			{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"kubernetes.io/arch": "arm64"}}}}}
		if got := a.fault(Node{Name: "n", Stale: c.stale}); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
	if got := (&agents{sets: everywhere}).fault(Node{Name: "gone", Stale: true}); got != "" {
		t.Errorf("a node that has gone: %q", got)
	}
}
