// Package sample makes clusters for tests and benchmarks: random ones with all that makes a scheduler's life hard, large
// ones shaped after public traces, and ones whose best packing is known. The same seed makes the same cluster.
package sample

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/engine"
	"temper.dev/temper/internal/capacity/snapshot"
)

// Namespace is where pods of samples are, unless In says otherwise.
const Namespace = "work"

const (
	zoneLabel = "topology.kubernetes.io/zone"
	hostLabel = "kubernetes.io/hostname"
)

// Node makes a node that Temper enforces, and what says so. It has as many physical cores as CPUs.
func Node(s *snapshot.Snapshot, name string, cpus int, memory string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hostLabel: name}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(cpus), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("110"),
	}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, c := range change {
		c(n)
	}
	if s.Cores == nil {
		s.Cores = map[string]int{}
	}
	s.Nodes = append(s.Nodes, n)
	s.Cores[name] = cpus
	s.TemperNodes = append(s.TemperNodes, &v1alpha1.TemperNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.TemperNodeStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue, Reason: "Attached"}},
	}})
	return n
}

// Pod makes a pod on a node ("": on none) whose controller would make it anew.
func Pod(s *snapshot.Snapshot, name, node, cpu, memory string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID(name)}}
	Own(p, "ReplicaSet", name)
	p.Spec = corev1.PodSpec{NodeName: node, Priority: new(int32), Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
	}}}}
	p.Status.Phase = corev1.PodPending
	if node != "" {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	for _, c := range change {
		c(p)
	}
	s.Pods = append(s.Pods, p)
	return p
}

// In puts a pod into another namespace. It stands before changes that make objects beside the pod.
func In(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

// Own makes the pod one of a controller's.
func Own(p *corev1.Pod, kind, name string) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: &yes}}
}

// Budget makes a PodDisruptionBudget over pods with label app, as its controller would have written its status.
func Budget(s *snapshot.Snapshot, name, app string, maxUnavailable int) *policyv1.PodDisruptionBudget {
	most := intstr.FromInt32(int32(maxUnavailable))
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
	for _, p := range s.Pods {
		if p.Labels["app"] != app {
			continue
		}
		b.Namespace = p.Namespace
		b.Status.ExpectedPods++
		if p.Status.Phase == corev1.PodRunning {
			b.Status.CurrentHealthy++
		}
	}
	b.Status.DesiredHealthy = max(0, b.Status.ExpectedPods-int32(maxUnavailable))
	b.Status.DisruptionsAllowed = max(0, b.Status.CurrentHealthy-b.Status.DesiredHealthy)
	s.PodDisruptionBudgets = append(s.PodDisruptionBudgets, b)
	return b
}

// Label gives a pod its app.
func Label(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

// Apart lets no two pods of an app on one node.
func Apart(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: hostLabel,
		}}}}
	}
}

// Together wants a pod of the app in the same zone.
func Together(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: zoneLabel,
		}}}}
	}
}

// Spread bounds how unevenly the pods of an app lie over the values of a node's label.
func Spread(app, key string, skew int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		})
	}
}

// Zone puts a node into a zone.
func Zone(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[zoneLabel] = name }
}

// Volume gives a pod a claim of its own, bound to a volume that one zone has.
func Volume(s *snapshot.Snapshot, zone string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		claim := "data-" + p.Name
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
		s.PersistentVolumes = append(s.PersistentVolumes, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-" + p.Name, Labels: map[string]string{zoneLabel: zone}},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: "csi.example.com", VolumeHandle: p.Name,
				}},
				ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: p.Namespace, Name: claim},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
				}}}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		})
		s.PersistentVolumeClaims = append(s.PersistentVolumeClaims, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: claim, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				VolumeName: "pv-" + p.Name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		})
	}
}

// Tolerate makes a pod tolerate a taint that keeps others away.
func Tolerate(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

// Taint keeps pods that do not tolerate it off a node.
func Taint(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

// Place puts the pods without a node where the scheduler would, the ones of the highest priority first, as its queue
// does; those that fit nowhere stay without. Then budgets can be made.
func Place(s *snapshot.Snapshot, seed uint64) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e, err := engine.New(ctx, s)
	if err != nil {
		return err
	}
	e.Reset(seed)
	var waiting []*corev1.Pod
	for _, p := range s.Pods {
		if p.Spec.NodeName == "" {
			waiting = append(waiting, p)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *corev1.Pod) int { return int(*b.Spec.Priority) - int(*a.Spec.Priority) })
	// A pod that was placed may be the one that another wants to be beside.
	for before := -1; before != len(waiting); {
		before = len(waiting)
		for _, p := range waiting {
			if err := place(e, p); err != nil {
				return err
			}
		}
		waiting = slices.DeleteFunc(waiting, func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
	}
	return nil
}

func place(e *engine.Engine, p *corev1.Pod) error {
	node, err := e.Schedule(p)
	if unfit := (*engine.Unschedulable)(nil); errors.As(err, &unfit) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.Bind(p, node); err != nil {
		return err
	}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return nil
}

// Daemons puts a pod of a DaemonSet on each node.
func Daemons(s *snapshot.Snapshot, name, cpu, memory string) {
	for _, n := range s.Nodes {
		Pod(s, name+"-"+n.Name, n.Name, cpu, memory, func(p *corev1.Pod) {
			Own(p, "DaemonSet", name)
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		})
	}
}

// group is a ReplicaSet, which the scheduler's default spreading asks for.
func group(s *snapshot.Snapshot, namespace, app string) {
	s.ReplicaSets = append(s.ReplicaSets, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	})
}
