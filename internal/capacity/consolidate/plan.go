package consolidate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/advice"
	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/snapshot"
)

// Kind is what a plan calls itself. It is written as the custom resource of this name would be.
const Kind = "ConsolidationPlan"

// Plan is which nodes are to be emptied, as it is shown, kept in a file, approved and carried out.
type Plan struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`
	// Status is what the plan was when it was made. Nothing is carried out by it.
	Status Status `json:"status"`
}

// Metadata is the part of an object's that a plan has.
type Metadata struct {
	// Name follows from the nodes and their machines: two plans of one name empty the same nodes.
	Name string `json:"name"`
}

// Spec is what is approved.
type Spec struct {
	Nodes []Node `json:"nodes"` // by name
}

// Node is one to be emptied. One of the same name that was made anew is another.
type Node struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Machine is its provider's name of it, by which it is deleted; "" where there is none.
	Machine string `json:"machine,omitempty"`
}

// Status is what it saves, and what keeps the other nodes.
type Status struct {
	advice.Plan `json:",inline"`
	// RemovedBy names who removes nodes of this cluster by itself; "": nobody does. Beside it no plan is carried out.
	RemovedBy string   `json:"removedBy,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// NewPlan makes of what the planner has found a plan that can be approved. Complete: the search has ended by itself.
func NewPlan(s *snapshot.Snapshot, found *plan.Plan, complete bool) *Plan {
	p := &Plan{APIVersion: v1alpha1.GroupVersion.String(), Kind: Kind, Spec: Spec{Nodes: []Node{}}, Status: Status{Plan: *advice.PlanOf(found, complete)}}
	emptied := found.Nodes()
	for _, node := range s.Nodes {
		if slices.Contains(emptied, node.Name) {
			p.Spec.Nodes = append(p.Spec.Nodes, Node{node.Name, node.UID, node.Spec.ProviderID})
		}
	}
	slices.SortFunc(p.Spec.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	p.Metadata.Name = p.Spec.name()
	return p
}

func (s Spec) name() string {
	hash := sha256.New()
	for _, node := range s.Nodes {
		fmt.Fprintf(hash, "%s %s %q\n", node.Name, node.UID, node.Machine)
	}
	return "consolidation-" + hex.EncodeToString(hash.Sum(nil))[:10]
}

// Read reads a plan that was written as JSON, and checks it.
func Read(from io.Reader) (*Plan, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	p := &Plan{}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("no plan of this version: %w", err)
	}
	return p, p.Check()
}

// Check refuses a plan that is none, or whose nodes are not those that its name stands for: somebody has changed what was
// approved.
func (p *Plan) Check() error {
	switch {
	case p.APIVersion != v1alpha1.GroupVersion.String() || p.Kind != Kind:
		return fmt.Errorf("it is %s %s, not %s %s", p.APIVersion, p.Kind, v1alpha1.GroupVersion, Kind)
	case len(p.Spec.Nodes) == 0:
		return errors.New("the plan empties no node")
	case p.Metadata.Name != p.Spec.name():
		return fmt.Errorf("plan %s stands for other nodes than it lists: those would be plan %s", p.Metadata.Name, p.Spec.name())
	}
	return nil
}

// Names are the nodes' names.
func (p *Plan) Names() (names []string) {
	for _, node := range p.Spec.Nodes {
		names = append(names, node.Name)
	}
	return names
}

// standsFor says why a plan is not for the cluster as it is; "": it is.
func (p *Plan) standsFor(s *snapshot.Snapshot) string {
	is := map[string]types.UID{}
	for _, node := range s.Nodes {
		is[node.Name] = node.UID
	}
	var gone []string
	for _, node := range p.Spec.Nodes {
		if is[node.Name] != node.UID {
			gone = append(gone, node.Name)
		}
	}
	if len(gone) == 0 {
		return ""
	}
	return "nodes that it empties are gone, or were made anew: " + strings.Join(gone, ", ")
}

// nodePool is on each node that Karpenter has made.
const nodePool = "karpenter.sh/nodepool"

// autoscalerStatus is where the cluster-autoscaler says how it is.
var autoscalerStatus = client.ObjectKey{Namespace: "kube-system", Name: "cluster-autoscaler-status"}

// RemovedBy names who removes nodes of the cluster by itself; "": nobody does. Two that empty nodes at a time undo each
// other's work: each counts on the room that the other takes.
func RemovedBy(ctx context.Context, cluster client.Reader, nodes []*corev1.Node) (string, error) {
	for _, node := range nodes {
		if pool, ok := node.Labels[nodePool]; ok {
			return fmt.Sprintf("Karpenter (node %s is of its NodePool %s)", node.Name, pool), nil
		}
	}
	err := cluster.Get(ctx, autoscalerStatus, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("whether a cluster-autoscaler is there cannot be told: %w", err)
	}
	if err == nil {
		return fmt.Sprintf("the cluster-autoscaler (it writes the ConfigMap %s)", autoscalerStatus), nil
	}
	return "", nil
}
