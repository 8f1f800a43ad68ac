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
		name          string
		before, after any
		told          bool
	}{
		{name: "its conditions", before: before, after: pod("2", func(p *corev1.Pod) { p.Status.PodIP = "::1"; p.Annotations = map[string]string{"x": "y"} })},
		{name: "that it has failed", before: before, after: pod("2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), told: true},
		{name: "that it has succeeded", before: before, after: pod("2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), told: true},
		{name: "that it runs", before: pod("1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), after: pod("2", func(*corev1.Pod) {})},
		{name: "that it is to go", before: before, after: pod("2", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })},
		{name: "its labels", before: before, after: pod("2", func(p *corev1.Pod) { p.Labels = map[string]string{"x": "y"} }), told: true},
		{name: "what controls it", before: before,
			after: pod("2", func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
			}), told: true},
		{name: "who else owns it", before: before, after: pod("2", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}} })},
		{name: "a node's heartbeat", before: node("1", "a"), after: node("2", "a")},
		{name: "a node's label", before: node("1", "a"), after: node("2", "b"), told: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := &cluster{changed: make(chan struct{}, 1)}
			cluster.compare(c.before, c.after)
			if cluster.stale != c.told || len(cluster.changed) == 1 != c.told {
				t.Errorf("got stale %t, told %t; want %t for both", cluster.stale, len(cluster.changed) == 1, c.told)
			}
		})
	}
}
