// Package explain says which tier pods are in: those of manifests, without a cluster, and those of a cluster.
package explain

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/policy"
)

// Manifests is what files hold of what matters to tiers.
type Manifests struct {
	pods     []pod
	policies []*v1alpha1.TierPolicy
	classes  []*schedulingv1.PriorityClass
	nodes    map[string]labels.Set
	spaces   map[string]labels.Set // of namespaces
	limited  map[string]bool       // namespaces that have a LimitRange
	others   map[string]int        // objects that are left alone, by kind
}

// pod is a pod, or what a workload makes its pods from.
type pod struct {
	name string // as in Deployment/shop/web
	*corev1.Pod
}

// Others are the kinds of objects that were left alone, and how many there are of each.
func (m *Manifests) Others() map[string]int { return m.others }

func (m *Manifests) leaveAlone(kind string) {
	if m.others == nil {
		m.others = map[string]int{}
	}
	m.others[kind]++
}

func (m *Manifests) take(object runtime.Object, kind string) error {
	switch o := object.(type) {
	case *v1alpha1.TierPolicy:
		return m.addPolicy(o)
	case *schedulingv1.PriorityClass:
		m.classes = append(slices.DeleteFunc(m.classes, func(c *schedulingv1.PriorityClass) bool { return c.Name == o.Name }), o)
	case *corev1.Node:
		if m.nodes == nil {
			m.nodes = map[string]labels.Set{}
		}
		m.nodes[o.Name] = o.Labels
	case *corev1.Namespace:
		if m.spaces == nil {
			m.spaces = map[string]labels.Set{}
		}
		m.spaces[o.Name] = o.Labels
	case *corev1.LimitRange:
		if m.limited == nil {
			m.limited = map[string]bool{}
		}
		m.limited[o.Namespace] = true
	default:
		meta, template := template(o)
		if template == nil {
			m.leaveAlone(kind)
			return nil
		}
		made := metav1.ObjectMeta{Namespace: meta.Namespace, Labels: template.Labels, OwnerReferences: meta.OwnerReferences}
		if _, isPod := o.(*corev1.Pod); !isPod {
			made.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: meta.Name, Controller: new(true)}}
		}
		m.pods = append(m.pods, pod{kind + "/" + nameOf(meta), &corev1.Pod{ObjectMeta: made, Spec: template.Spec}})
	}
	return nil
}

// addPolicy adds a policy. A later one of the same name takes its place, as it would in the cluster, and keeps its age.
func (m *Manifests) addPolicy(p *v1alpha1.TierPolicy) error {
	if _, err := policy.Compile(p); err != nil {
		return err
	}
	for i, before := range m.policies {
		if before.Name == p.Name {
			if p.CreationTimestamp.IsZero() {
				p.CreationTimestamp = before.CreationTimestamp
			}
			m.policies[i] = p
			return nil
		}
	}
	m.policies = append(m.policies, p)
	return nil
}

// AddMissing adds the policies and classes of others that have names of their own, and returns those as Kind/name.
func (m *Manifests) AddMissing(others *Manifests) (added []string) {
	for _, p := range others.policies {
		if !slices.ContainsFunc(m.policies, func(mine *v1alpha1.TierPolicy) bool { return mine.Name == p.Name }) {
			m.policies = append(m.policies, p)
			added = append(added, "TierPolicy/"+p.Name)
		}
	}
	for _, c := range others.classes {
		if m.class(c.Name) == nil {
			m.classes = append(m.classes, c)
			added = append(added, "PriorityClass/"+c.Name)
		}
	}
	return added
}

// template is a pod, or what a workload makes its pods from; nil: it makes none.
func template(object runtime.Object) (*metav1.ObjectMeta, *corev1.PodTemplateSpec) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &o.ObjectMeta, &corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
	case *appsv1.Deployment:
		return &o.ObjectMeta, &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.ObjectMeta, &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.ObjectMeta, &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.ObjectMeta, &o.Spec.Template
	case *corev1.ReplicationController:
		return &o.ObjectMeta, o.Spec.Template
	case *batchv1.Job:
		return &o.ObjectMeta, &o.Spec.Template
	case *batchv1.CronJob:
		return &o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template
	}
	return nil, nil
}

func nameOf(meta *metav1.ObjectMeta) string {
	name := meta.Name
	if name == "" {
		name = meta.GenerateName + "*"
	}
	if meta.Namespace != "" {
		name = meta.Namespace + "/" + name
	}
	return name
}
