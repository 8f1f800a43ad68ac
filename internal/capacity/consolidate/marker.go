package consolidate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MarkerAnnotation is on each node that an executor has cordoned, as JSON: whose plan it is, and until when.
const MarkerAnnotation = "temper.dev/consolidation"

// manager is the field manager of what executors write. By it they know their own cordons from those of others.
const manager = "temper-consolidate"

// Marker is what the annotation says.
type Marker struct {
	Plan  string `json:"plan"`
	Owner string `json:"owner"`
	// Deadline is when the owner gives the node up if it is not empty. It is for people: who takes a node back judges the
	// owner by its Lease, since clocks differ.
	Deadline time.Time `json:"deadline"`
	// Emptied is when the node was empty. From then on it waits, cordoned, for whoever deletes its machine.
	Emptied *time.Time `json:"emptied,omitempty"`
}

// marked is a node that has a marker.
type marked struct {
	*corev1.Node
	marker Marker
}

// markerOf reads a node's marker; nil: it has none. One that nobody here has written is an error, and the node is left
// alone: what it means is not known.
func markerOf(node *corev1.Node) (*marked, error) {
	text, ok := node.Annotations[MarkerAnnotation]
	if !ok {
		return nil, nil
	}
	n := &marked{Node: node}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&n.marker); err != nil || n.marker.Plan == "" || n.marker.Owner == "" {
		return nil, fmt.Errorf("node %s: its annotation %s is not one that this version writes: %q", node.Name, MarkerAnnotation, text)
	}
	return n, nil
}

// put writes the marker to the node in memory.
func (m Marker) put(node *corev1.Node) {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and times alone
	}
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, MarkerAnnotation, string(text))
}

// cordonIsOurs is whether an executor has cordoned the node, and nobody else since. The API server keeps who has written a
// field last: somebody who uncordons the node and cordons it again owns the cordon, and so does who applies it beside us.
// 'kubectl cordon' of a cordoned node writes nothing, and cannot be seen.
func cordonIsOurs(node *corev1.Node) bool {
	if !node.Spec.Unschedulable {
		return false
	}
	ours, others := false, false
	for _, entry := range node.ManagedFields {
		if !hasCordon(entry.FieldsV1) {
			continue
		}
		if entry.Manager == manager {
			ours = true
		} else {
			others = true
		}
	}
	return ours && !others
}

func hasCordon(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	var has struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if err := json.Unmarshal(fields.Raw, &has); err != nil {
		return true // whoever it is may own it
	}
	_, ok := has.Spec["f:unschedulable"]
	return ok
}
