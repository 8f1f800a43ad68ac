package nodepods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod's status is written again and again. Only what tiers depend on is told.
func TestCompare(t *testing.T) {
	pod := func(version string, change func(*corev1.Pod)) any {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: version}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		change(p)
		trimmed, err := trimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		return trimmed
	}
	node := func(version, label string) any {
		trimmed, err := trimMetadata(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{"l": label}}})
		if err != nil {
			t.Fatal(err)
		}
		return trimmed
	}
	before := pod("1", func(*corev1.Pod) {})
	for _, c := range []struct {
		what          string
		before, after any
		told          bool
	}{
		{"its conditions", before, pod("2", func(p *corev1.Pod) { p.Status.PodIP = "::1"; p.Annotations = map[string]string{"x": "y"} }), false},
		{"that it has failed", before, pod("2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), true},
		{"that it has succeeded", before, pod("2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), true},
		{"that it runs", pod("1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), pod("2", func(*corev1.Pod) {}), false},
		{"its labels", before, pod("2", func(p *corev1.Pod) { p.Labels = map[string]string{"x": "y"} }), true},
		{"what controls it", before, pod("2", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
		}), true},
		{"who else owns it", before, pod("2", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}} }), false},
		{"a node's heartbeat", node("1", "a"), node("2", "a"), false},
		{"a node's label", node("1", "a"), node("2", "b"), true},
	} {
		cluster := &cluster{changed: make(chan struct{}, 1)}
		cluster.compare(c.before, c.after)
		if cluster.stale != c.told || len(cluster.changed) == 1 != c.told {
			t.Errorf("%s: stale %t, told %t", c.what, cluster.stale, len(cluster.changed) == 1)
		}
	}
}
