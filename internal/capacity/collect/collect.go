// Package collect makes the snapshot that advice rests on: of a cluster, or of manifests; and adds to it what pods were
// measured to use. It reads, and writes nothing.
package collect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/snapshot"
	"temper.dev/temper/internal/cluster/policy"
	"temper.dev/temper/packaging/kubernetes"
)

// scheme has the kinds of a snapshot, what makes pods, and what measures them.
var scheme = Scheme()

// Scheme has the kinds that a client must know which a snapshot is read with, and more.
func Scheme(more ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, schedulingv1.AddToScheme,
		storagev1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, metricsv1beta1.AddToScheme, v1alpha1.AddToScheme,
	}, more...) {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// Result is a snapshot, and what whoever reads the advice should know of it.
type Result struct {
	*snapshot.Snapshot
	Notes []string
	// The VerticalPodAutoscalers that were found on the way.
	autoscalers []verticalAutoscaler
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// standIn adds what a cluster with Temper has, where Temper is not installed yet.
func (r *Result) standIn() error {
	var p v1alpha1.TierPolicy
	if err := utilyaml.UnmarshalStrict(kubernetes.DefaultPolicy, &p); err != nil {
		return fmt.Errorf("Temper's own policy: %w", err)
	}
	r.TierPolicies = append(r.TierPolicies, &p)
	classes := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(kubernetes.PriorityClasses), 4096)
	for {
		var class schedulingv1.PriorityClass
		if err := classes.Decode(&class); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("Temper's own PriorityClasses: %w", err)
		}
		if r.class(class.Name) == nil {
			r.PriorityClasses = append(r.PriorityClasses, &class)
		}
	}
	r.note("Temper's own TierPolicy stands in, since there is none")
	return nil
}

func (r *Result) class(name string) *schedulingv1.PriorityClass {
	for _, c := range r.PriorityClasses {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// leaveOut drops policies that are not valid, as agents do.
func (r *Result) leaveOut() {
	var valid []*v1alpha1.TierPolicy
	for _, p := range r.TierPolicies {
		if _, err := policy.Compile(p); err != nil {
			r.note("left out: %v", err)
			continue
		}
		valid = append(valid, p)
	}
	r.TierPolicies = valid
}

// dropStrays takes pods off nodes that are not there: they are about to be deleted, or their nodes are in no file.
func (r *Result) dropStrays(what string, drop bool) {
	nodes := map[string]bool{}
	for _, n := range r.Nodes {
		nodes[n.Name] = true
	}
	var kept []*corev1.Pod
	strays := 0
	for _, pod := range r.Pods {
		if pod.Spec.NodeName == "" || nodes[pod.Spec.NodeName] {
			kept = append(kept, pod)
			continue
		}
		strays++
		if !drop {
			pod.Spec.NodeName = ""
			kept = append(kept, pod)
		}
	}
	r.Pods = kept
	if strays > 0 {
		r.note("%d pods are on nodes that are not there: %s", strays, what)
	}
}

// slim drops what no plan needs, and what a file should not hold: commands, environments, and copies of both.
func slim(pod *corev1.Pod) {
	forget(&pod.ObjectMeta)
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			c.Env, c.EnvFrom, c.Command, c.Args = nil, nil, nil, nil
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
		}
	}
}

func forget(o *metav1.ObjectMeta) {
	o.ManagedFields = nil
	delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
}

// hours between two moments; none if the first is not known.
func hours(from metav1.Time, to time.Time) float64 {
	if from.IsZero() {
		return 0
	}
	return max(0, to.Sub(from.Time).Hours())
}
