package snapshot_test

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"temper.dev/temper/internal/capacity/snapshot"
)

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// What was written is read as the same, to the last byte.
func TestWrittenIsReadAgain(t *testing.T) {
	s := &snapshot.Snapshot{
		Nodes: []*corev1.Node{node("a")}, Pods: []*corev1.Pod{pod("x", "a")},
		Cores: map[string]int{"a": 4}, Use: map[string]snapshot.Use{"default/x": {CPU: resource.MustParse("250m"), Hours: 30}},
	}
	var first, second bytes.Buffer
	if err := s.Write(&first); err != nil {
		t.Fatal(err)
	}
	again, err := snapshot.Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Write(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Errorf("read and written again it is\n%s\nwant\n%s", second.String(), first.String())
	}
	if use := again.Use["default/x"]; use.CPU.MilliValue() != 250 || use.Hours != 30 {
		t.Errorf("use is %+v, want 250m in 30 hours", use)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a field that is not known", `{"nodes":[],"pods":[],"resourceClaims":[]}`, "resourceClaims"},
		{"a pod on a node that is not there", `{"nodes":[],"pods":[{"metadata":{"namespace":"n","name":"p","uid":"1"},"spec":{"nodeName":"gone","containers":[]}}]}`, "pod n/p is on node gone"},
		{"a node twice", `{"nodes":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}],"pods":[]}`, "node a is there twice"},
		{"a pod twice", `{"nodes":[],"pods":[{"metadata":{"name":"p"},"spec":{"containers":[]}},{"metadata":{"name":"p"},"spec":{"containers":[]}}]}`, "pod /p is there twice"},
		{"a pod without a UID", `{"nodes":[],"pods":[{"metadata":{"name":"p"},"spec":{"containers":[]}}]}`, "pod /p has no UID"},
		{"a node that is null", `{"nodes":[null],"pods":[]}`, "nodes[0] is null"},
		{"a budget that is null", `{"nodes":[],"pods":[],"podDisruptionBudgets":[null]}`, "podDisruptionBudgets[0] is null"},
		{"a pod that is null", `{"nodes":[],"pods":[null]}`, "pods[0] is null"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := snapshot.Read(strings.NewReader(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}
