package consolidate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A cordon is ours if nobody else has written it, as far as the API server knows.
func TestCordonIsOurs(t *testing.T) {
	writes := func(who, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: who, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	}
	const cordon, other = `{"f:metadata":{},"f:spec":{"f:unschedulable":{}}}`, `{"f:spec":{"f:providerID":{}}}`
	for _, tt := range []struct {
		name     string
		cordoned bool
		by       []metav1.ManagedFieldsEntry
		want     bool
	}{
		{"we have written it", true, []metav1.ManagedFieldsEntry{writes(manager, cordon), writes("kubelet", other)}, true},
		{"nobody is known to have", true, nil, false},
		{"somebody else has", true, []metav1.ManagedFieldsEntry{writes(manager, other), writes("kubectl-cordon", cordon)}, false},
		{"somebody else has, too", true, []metav1.ManagedFieldsEntry{writes(manager, cordon), writes("gitops", cordon)}, false},
		{"what somebody has written cannot be read", true, []metav1.ManagedFieldsEntry{writes(manager, cordon), writes("later", `[]`)}, false},
		{"it was ended", false, []metav1.ManagedFieldsEntry{writes(manager, cordon)}, false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ManagedFields: tt.by}, Spec: corev1.NodeSpec{Unschedulable: tt.cordoned}}
		if got := cordonIsOurs(node); got != tt.want {
			t.Errorf("%s: ours is %t, want %t", tt.name, got, tt.want)
		}
	}
}

// A marker that this version has not written says nothing that could be relied on.
func TestMarkerOf(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"whole", `{"plan":"p","owner":"o","deadline":"2026-01-01T00:00:00Z"}`, ""},
		{"emptied", `{"plan":"p","owner":"o","deadline":"2026-01-01T00:00:00Z","emptied":"2026-01-01T00:00:00Z"}`, ""},
		{"without an owner", `{"plan":"p","deadline":"2026-01-01T00:00:00Z"}`, "is not one that this version writes"},
		{"of a later version", `{"plan":"p","owner":"o","deadline":"2026-01-01T00:00:00Z","until":"x"}`, "is not one that this version writes"},
		{"no JSON", `true`, "is not one that this version writes"},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{MarkerAnnotation: tt.text}}}
		n, err := markerOf(node)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && n.marker.Owner != "o" {
			t.Errorf("%s: %v and %v, want %q", tt.name, n, err, tt.want)
		}
	}
}
