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
		name  string
		stale bool
		pods  []corev1.Pod
		sets  []appsv1.DaemonSet
		want  string
	}{
		{name: "all is well", pods: []corev1.Pod{pod(corev1.PodRunning, true, "")}, sets: everywhere},
		{name: "it cannot reach the API server", stale: true, pods: []corev1.Pod{pod(corev1.PodRunning, true, "")}, sets: everywhere},
		{name: "one that ends beside one that is ready", pods: []corev1.Pod{pod(corev1.PodRunning, true, ""), pod(corev1.PodRunning, false, "")}, sets: everywhere},
		{name: "outside a pod"},
		{name: "does worse than before", pods: []corev1.Pod{pod(corev1.PodRunning, false, "")}, sets: everywhere,
			want: "agent's pod s/temper-agent-x is not ready: its log says why"},
		{name: "no image", stale: true, pods: []corev1.Pod{pod(corev1.PodPending, false, "ImagePullBackOff")}, sets: everywhere,
			want: "agent's pod s/temper-agent-x is not ready: ImagePullBackOff"},
		{name: "not started", stale: true, pods: []corev1.Pod{pod(corev1.PodPending, false, "")}, sets: everywhere, want: "agent's pod s/temper-agent-x is not ready: Pending"},
		{name: "evicted", stale: true, pods: []corev1.Pod{evicted}, sets: everywhere, want: "agent's pod s/temper-agent-x is not ready: Evicted"},
		{name: "no DaemonSet", stale: true, want: "no agent's pod is there, and no DaemonSet of agents is"},
		{name: "another architecture", stale: true, sets: elsewhere, want: "no agent's pod is there: DaemonSet s/temper-agent selects other nodes"},
		{name: "a taint", stale: true, sets: everywhere, want: "no agent's pod is there: 'kubectl describe daemonset -n s temper-agent' and the node's taints say why"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := agents{sets: c.sets, pods: map[string][]corev1.Pod{"n": c.pods}, nodes: []metav1.PartialObjectMetadata{
				{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"kubernetes.io/arch": "arm64"}}}}}
			if got := a.fault(Node{Name: "n", Stale: c.stale}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := (&agents{sets: everywhere}).fault(Node{Name: "gone", Stale: true}); got != "" {
		t.Errorf("a node that has gone: %q", got)
	}
}
