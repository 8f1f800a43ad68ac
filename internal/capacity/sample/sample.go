// Package sample makes clusters for tests and benchmarks: random ones with all that makes a scheduler's life hard, large
// ones shaped after public traces, and ones whose best packing is known. The same seed makes the same cluster.
package sample

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
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

// Random makes a small cluster, of up to 16 nodes and some 60 pods, with constraints of every kind: spread over zones and
// nodes, affinity both ways, volumes that one zone has, taints, priorities, host ports, budgets (some of which allow
// nothing, and some pods have two), pods that must not be moved, cordons of others, and nodes that Temper does not enforce.
func Random(seed uint64) (*snapshot.Snapshot, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &snapshot.Snapshot{Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}}}
	for _, value := range []int32{0, 1000, 2000} {
		s.PriorityClasses = append(s.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("value-%d", value)}, Value: value})
	}
	randomNodes(s, r)
	Daemons(s, "daemon", "100m", "64Mi")
	for app := range 4 + r.IntN(8) {
		randomApp(s, r, fmt.Sprintf("app%d", app))
	}
	if err := Place(s, seed); err != nil {
		return nil, err
	}
	for app := range 12 {
		name := fmt.Sprintf("app%d", app)
		if r.IntN(2) == 0 {
			Budget(s, name, name, r.IntN(4))
		}
		if r.IntN(10) == 0 {
			Budget(s, name+"-too", name, 1)
		}
	}
	for _, n := range s.Nodes {
		if r.IntN(12) == 0 {
			n.Spec.Unschedulable = true
		}
	}
	return s, nil
}

func randomNodes(s *snapshot.Snapshot, r *rand.Rand) {
	zones := 1 + r.IntN(3)
	for i := range 4 + r.IntN(13) {
		cpus := 4 << r.IntN(2)
		n := Node(s, fmt.Sprintf("node%02d", i), cpus, fmt.Sprintf("%dGi", cpus*4), Zone(fmt.Sprint(i%zones)))
		if r.IntN(8) == 0 {
			Taint("dedicated")(n)
		}
		if r.IntN(15) == 0 {
			n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("6")
		}
		if r.IntN(25) == 0 {
			s.TemperNodes = s.TemperNodes[:len(s.TemperNodes)-1]
		}
	}
}

func randomApp(s *snapshot.Snapshot, r *rand.Rand, app string) {
	group(s, Namespace, app)
	cpu := fmt.Sprintf("%dm", 100*(1+r.IntN(12)))
	memory := fmt.Sprintf("%dMi", 128*(1+r.IntN(24)))
	changes := []func(*corev1.Pod){Label(app), func(p *corev1.Pod) { Own(p, "ReplicaSet", app) }}
	switch r.IntN(8) {
	case 0:
		changes = append(changes, Apart(app))
	case 1:
		changes = append(changes, Spread(app, zoneLabel, 1))
	case 2:
		changes = append(changes, Spread(app, hostLabel, 1+r.Int32N(2)))
	case 3:
		changes = append(changes, Together("app0"))
	case 4:
		changes = append(changes, func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 8080, ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
		})
	}
	if r.IntN(3) == 0 {
		changes = append(changes, Tolerate("dedicated"))
	}
	class := s.PriorityClasses[r.IntN(len(s.PriorityClasses))]
	changes = append(changes, func(p *corev1.Pod) { p.Spec.PriorityClassName, *p.Spec.Priority = class.Name, class.Value })
	for i := range 1 + r.IntN(8) {
		own := changes
		if app == "app1" {
			own = append(slices.Clone(changes), Volume(s, fmt.Sprint(i%3)))
		}
		if r.IntN(40) == 0 {
			own = append(slices.Clone(own), func(p *corev1.Pod) {
				p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
			})
		}
		Pod(s, fmt.Sprintf("%s-%d", app, i), "", cpu, memory, own...)
	}
}

// Fleet makes a large cluster of nodes with 64 CPUs and 256 GiB in three zones, and pods shaped after Alibaba's
// cluster-trace-gpu-v2023: few distinct sizes that make nine tenths of the pods, and a tail. A median of 11.3 cores is
// scaled so that requests fill level (0 to 1) of the CPUs. A tenth of the pods are DaemonSets'; of the apps, one in seven
// is spread over zones, one in ten has no two pods on a node, one in twelve has volumes, and half have a budget. The apps
// are those of 50 namespaces.
func Fleet(seed uint64, nodes, pods int, level float64) (*snapshot.Snapshot, error) {
	r := rand.New(rand.NewPCG(seed, 2))
	s := &snapshot.Snapshot{Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}}}
	for i := range nodes {
		Node(s, fmt.Sprintf("node%04d", i), 64, "256Gi", Zone(fmt.Sprint(i%3)))
	}
	daemons := pods / 10 / nodes
	for i := range daemons {
		Daemons(s, fmt.Sprintf("daemon%d", i), "100m", "200Mi")
	}
	const meanOfShape = 0.82 // of fleetSize, by its median
	median := level * 64 * float64(nodes) / float64(pods-daemons*nodes) / meanOfShape
	var apps []string
	for left := pods - daemons*nodes; left > 0; {
		app := fmt.Sprintf("app%d", len(apps))
		apps = append(apps, app)
		replicas := min(left, replicas(r))
		left -= replicas
		fleetApp(s, r, app, replicas, int(1000*median*fleetSize(r)), len(apps))
	}
	if err := Place(s, seed); err != nil {
		return nil, err
	}
	for i, app := range apps {
		if i%2 == 0 {
			Budget(s, app, app, 1+r.IntN(3))
		}
	}
	return s, nil
}

const fleetNamespaces = 50

// replicas has a heavy tail: most apps have a few pods, and a few have hundreds.
func replicas(r *rand.Rand) int { return min(400, int(2/(1-r.Float64()))) }

// fleetSize is a pod's CPU request over the median, by the trace's quantiles: p10 0.28, p25 0.35, p50 1, p75 1.06, p90 1.45,
// p99 2.8.
func fleetSize(r *rand.Rand) float64 {
	common := []float64{0.1, 0.28, 0.28, 0.35, 0.35, 0.71, 1, 1, 1, 1.06, 1.06, 1.06, 1.45, 1.45}
	switch u := r.Float64(); {
	case u < 0.89:
		return common[r.IntN(len(common))]
	case u < 0.98:
		return 0.1 + 1.7*r.Float64()
	default:
		return 1.5 + 2*r.Float64()
	}
}

func fleetApp(s *snapshot.Snapshot, r *rand.Rand, app string, replicas, milliCPU, number int) {
	namespace := fmt.Sprintf("team%d", number%fleetNamespaces)
	group(s, namespace, app)
	milliCPU = max(10, milliCPU)
	cpu, memory := fmt.Sprintf("%dm", milliCPU), fmt.Sprintf("%dMi", max(16, milliCPU*(1+r.IntN(4))))
	changes := []func(*corev1.Pod){In(namespace), Label(app), func(p *corev1.Pod) { Own(p, "ReplicaSet", app) }}
	switch {
	case number%7 == 0:
		changes = append(changes, Spread(app, zoneLabel, 1))
	case number%10 == 0:
		changes = append(changes, Apart(app))
	}
	for i := range replicas {
		own := changes
		if number%12 == 0 {
			own = append(slices.Clone(changes), Volume(s, fmt.Sprint(i%3)))
		}
		Pod(s, fmt.Sprintf("%s-%d", app, i), "", cpu, memory, own...)
	}
}

// Packed makes a cluster whose pods fill exactly full nodes to the last CPU, and lie on all nodes evenly: no plan can keep
// fewer than full of them.
func Packed(seed uint64, nodes, full int) (*snapshot.Snapshot, error) {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &snapshot.Snapshot{}
	for i := range nodes {
		Node(s, fmt.Sprintf("node%04d", i), 16, "64Gi")
	}
	for i := range full {
		for left := 16000; left > 0; {
			size := min(left, 250*(1+r.IntN(12)))
			left -= size
			Pod(s, fmt.Sprintf("pod%d-%d", i, left), "", fmt.Sprintf("%dm", size), "128Mi")
		}
	}
	r.Shuffle(len(s.Pods), func(i, j int) { s.Pods[i], s.Pods[j] = s.Pods[j], s.Pods[i] })
	return s, Place(s, seed)
}
