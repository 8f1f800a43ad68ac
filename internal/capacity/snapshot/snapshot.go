// Package snapshot holds what a capacity plan rests on: the objects of a cluster at one moment, as a value that can be kept
// in a file. A plan that somebody doubts is made again from that file.
package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"temper.dev/temper/api/v1alpha1"
)

// Snapshot is a cluster at one moment. Nobody may change its objects while a plan is made of it: they are shared, not
// copied. An object that is missing counts as one that the cluster does not have, so a list that could not be read must
// end the reading, not be left empty: without PodDisruptionBudgets every eviction would seem to be allowed.
type Snapshot struct {
	Nodes                  []*corev1.Node                  `json:"nodes"`
	Pods                   []*corev1.Pod                   `json:"pods"`
	Namespaces             []*corev1.Namespace             `json:"namespaces,omitempty"`
	PriorityClasses        []*schedulingv1.PriorityClass   `json:"priorityClasses,omitempty"`
	PodDisruptionBudgets   []*policyv1.PodDisruptionBudget `json:"podDisruptionBudgets,omitempty"`
	PersistentVolumes      []*corev1.PersistentVolume      `json:"persistentVolumes,omitempty"`
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim `json:"persistentVolumeClaims,omitempty"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses,omitempty"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes,omitempty"`
	VolumeAttachments      []*storagev1.VolumeAttachment   `json:"volumeAttachments,omitempty"`
	Services               []*corev1.Service               `json:"services,omitempty"`
	ReplicationControllers []*corev1.ReplicationController `json:"replicationControllers,omitempty"`
	ReplicaSets            []*appsv1.ReplicaSet            `json:"replicaSets,omitempty"`
	StatefulSets           []*appsv1.StatefulSet           `json:"statefulSets,omitempty"`
	TemperNodes            []*v1alpha1.TemperNode          `json:"temperNodes,omitempty"`
	TierPolicies           []*v1alpha1.TierPolicy          `json:"tierPolicies,omitempty"`
	// Cores are nodes' physical cores, by the node's name. A node that is not in it counts half of its CPUs, as if each core
	// had two threads: too few cores cost savings, too many cost a critical pod its CPU.
	Cores map[string]int `json:"cores,omitempty"`
	// Autoscalers may scale pods by the share of their CPU requests that they use: such requests must not be lowered.
	Autoscalers []*autoscalingv2.HorizontalPodAutoscaler `json:"autoscalers,omitempty"`
	// Use is what pods were measured to use, by namespace/name. A pod that is not in it counts by its requests.
	Use map[string]Use `json:"use,omitempty"`
	// Moment is what pods used at one moment, by namespace/name. Nothing can be concluded from one that is low.
	Moment map[string]resource.Quantity `json:"moment,omitempty"`
	// Recommended are the CPU requests that a VerticalPodAutoscaler recommends for pods, by namespace/name. It does not say
	// what their highest minute was.
	Recommended map[string]Recommendation `json:"recommended,omitempty"`
}

// Use is what a pod was measured to use.
type Use struct {
	// CPU is the most that the pod used, as the caller means it: for critical pods the highest minute.
	CPU resource.Quantity `json:"cpu"`
	// P95 is what 95 per cent of the minutes stayed below.
	P95 resource.Quantity `json:"p95,omitzero"`
	// Hours of data that CPU rests on. Under EnoughHours it does not count.
	Hours float64 `json:"hours"`
}

// Recommendation is what a VerticalPodAutoscaler says of a pod.
type Recommendation struct {
	CPU resource.Quantity `json:"cpu"`
	// Hours for which it has had a recommendation.
	Hours float64 `json:"hours"`
}

// EnoughHours of data show a day's peak; with fewer a pod counts by its requests.
const EnoughHours = 24

// Key is how a pod is named in Use, in plans and in messages: namespace/name.
func Key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// Read reads a snapshot that Write has written. Fields that are not known are an error: a snapshot of a later version may
// hold what forbids a move.
func Read(from io.Reader) (*Snapshot, error) {
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	s := &Snapshot{}
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("the snapshot is not JSON of this version: %w; write it with the version that reads it", err)
	}
	return s, s.Check()
}

// Write writes the snapshot as JSON.
func (s *Snapshot) Write(to io.Writer) error { return json.NewEncoder(to).Encode(s) }

// Check finds what no cluster has at one moment: nothing in place of an object, an object twice, and pods on nodes that do
// not exist. That comes from lists that were read at different times; the snapshot is to be taken again.
func (s *Snapshot) Check() error {
	faults := s.nulls()
	nodes := map[string]bool{}
	for _, node := range s.Nodes {
		if node == nil {
			continue
		}
		if nodes[node.Name] {
			faults = append(faults, fmt.Errorf("node %s is there twice", node.Name))
		}
		nodes[node.Name] = true
	}
	pods, ids := map[string]bool{}, map[types.UID]bool{}
	for _, pod := range s.Pods {
		if pod == nil {
			continue
		}
		switch {
		case pods[Key(pod)]:
			faults = append(faults, fmt.Errorf("pod %s is there twice", Key(pod)))
		case pod.UID == "" || ids[pod.UID]:
			faults = append(faults, fmt.Errorf("pod %s has no UID of its own, by which the scheduler knows it", Key(pod)))
		case pod.Spec.NodeName != "" && !nodes[pod.Spec.NodeName]:
			faults = append(faults, fmt.Errorf("pod %s is on node %s, which is not there", Key(pod), pod.Spec.NodeName))
		}
		pods[Key(pod)], ids[pod.UID] = true, true
	}
	if len(faults) > 0 {
		return fmt.Errorf("the snapshot is of no one moment, take it again: %w", errors.Join(faults...))
	}
	return nil
}

// nulls finds places in a list that hold nothing.
func (s *Snapshot) nulls() (faults []error) {
	for _, list := range []struct {
		name string
		null int
	}{
		{"nodes", slices.Index(s.Nodes, nil)}, {"pods", slices.Index(s.Pods, nil)}, {"namespaces", slices.Index(s.Namespaces, nil)},
		{"priorityClasses", slices.Index(s.PriorityClasses, nil)}, {"podDisruptionBudgets", slices.Index(s.PodDisruptionBudgets, nil)},
		{"persistentVolumes", slices.Index(s.PersistentVolumes, nil)}, {"persistentVolumeClaims", slices.Index(s.PersistentVolumeClaims, nil)},
		{"storageClasses", slices.Index(s.StorageClasses, nil)}, {"csiNodes", slices.Index(s.CSINodes, nil)},
		{"volumeAttachments", slices.Index(s.VolumeAttachments, nil)}, {"services", slices.Index(s.Services, nil)},
		{"replicationControllers", slices.Index(s.ReplicationControllers, nil)}, {"replicaSets", slices.Index(s.ReplicaSets, nil)},
		{"statefulSets", slices.Index(s.StatefulSets, nil)}, {"temperNodes", slices.Index(s.TemperNodes, nil)},
		{"tierPolicies", slices.Index(s.TierPolicies, nil)}, {"autoscalers", slices.Index(s.Autoscalers, nil)},
	} {
		if list.null >= 0 {
			faults = append(faults, fmt.Errorf("%s[%d] is null", list.name, list.null))
		}
	}
	return faults
}

// Ended is whether a pod has ended for good. It holds no room on its node any more.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
