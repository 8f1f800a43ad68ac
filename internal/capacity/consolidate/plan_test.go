package consolidate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"temper.dev/temper/internal/capacity/consolidate"
	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/snapshot"
)

// planFor empties nodes a and b, whose UIDs are those given.
func planFor(a, b types.UID) *consolidate.Plan {
	s := &snapshot.Snapshot{}
	for name, uid := range map[string]types.UID{"a": a, "b": b, "c": "3"} {
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}, Spec: corev1.NodeSpec{ProviderID: "cloud://" + name}})
	}
	return consolidate.NewPlan(s, &plan.Plan{Steps: []plan.Step{{Node: "b"}, {Node: "a"}}}, true)
}

// A name stands for nodes by name and UID, in whatever order they were found.
func TestNames(t *testing.T) {
	first := planFor("1", "2").Metadata.Name
	if again := planFor("1", "2").Metadata.Name; again != first {
		t.Errorf("the same nodes are %s and %s", first, again)
	}
	if other := planFor("1", "4").Metadata.Name; other == first {
		t.Errorf("a node that was made anew is in a plan of the same name, %s", other)
	}
}

// What was written is read again, and what somebody has changed is refused.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, from, to string // replaced in the text
		want           string // in the error; "": it is read
	}{
		{"as it was written", "", "", ""},
		{"what it saves is changed", `"savedCPUs":0`, `"savedCPUs":4`, ""},
		{"another node", `"uid":"2"`, `"uid":"9"`, "stands for other nodes than it lists"},
		{"one node less", `{"name":"a","uid":"1","machine":"cloud://a"},`, "", "stands for other nodes than it lists"},
		{"no node", `[{"name":"a","uid":"1","machine":"cloud://a"},{"name":"b","uid":"2","machine":"cloud://b"}]`, "[]", "empties no node"},
		{"another kind", `"ConsolidationPlan"`, `"TierPolicy"`, "not temper.dev/v1alpha1 ConsolidationPlan"},
		{"a field of a later version", `"spec":{`, `"spec":{"windows":[],`, "windows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := json.Marshal(planFor("1", "2"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(text, []byte(tt.from)) {
				t.Fatalf("no %s in %s", tt.from, text)
			}
			p, err := consolidate.Read(strings.NewReader(strings.Replace(string(text), tt.from, tt.to, 1)))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if err == nil && strings.Join(p.Names(), " ") != "a b" {
				t.Errorf("nodes are %v, want a b", p.Names())
			}
		})
	}
}
