package sample

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/internal/capacity/snapshot"
)

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
