package engine_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"temper.dev/temper/internal/capacity/engine"
	"temper.dev/temper/internal/capacity/snapshot"
)

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("3")}
	n.Status.Capacity = n.Status.Allocatable
	for _, c := range change {
		c(n)
	}
	return n
}

func pod(name, on, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}}}
	p.Spec = corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{
		Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
	}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func claim(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
}

func apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, TopologyKey: "kubernetes.io/hostname",
	}}}}
}

func zone(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels["topology.kubernetes.io/zone"] = name }
}

// Each case leaves one node, or none, for a pod of one CPU; which, is for kube-scheduler's plugins to say.
func TestSchedule(t *testing.T) {
	tests := []struct {
		name string
		s    snapshot.Snapshot
		pod  *corev1.Pod
		want string
		err  string // part of the error; "": there is none
	}{
		{"the emptier node has the higher score", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{pod("x", "a", "2")},
		}, pod("new", "", "1"), "b", ""},
		{"CPU", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{pod("x", "a", "3500m"), pod("y", "b", "3")},
		}, pod("new", "", "1"), "b", ""},
		{"a node's number of pods", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a"), node("b")},
			Pods:  []*corev1.Pod{pod("x", "a", "0"), pod("y", "a", "0"), pod("z", "a", "0"), pod("w", "b", "3")},
		}, pod("new", "", "1"), "b", ""},
		{"an extended resource", snapshot.Snapshot{Nodes: []*corev1.Node{node("a"), node("b", func(n *corev1.Node) {
			n.Status.Allocatable["example.com/device"] = resource.MustParse("1")
		})}}, pod("new", "", "1", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["example.com/device"] = resource.MustParse("1")
		}), "b", ""},
		{"a native sidecar's request adds to the containers'", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{pod("x", "a", "2500m"), pod("y", "b", "2")},
		}, pod("new", "", "1", func(p *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: &always, Resources: p.Spec.Containers[0].Resources}}
		}), "b", ""},
		{"a plain init container counts by the larger of both", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a")}, Pods: []*corev1.Pod{pod("x", "a", "3")},
		}, pod("new", "", "1", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: p.Spec.Containers[0].Resources}}
		}), "a", ""},
		{"a startup taint", snapshot.Snapshot{Nodes: []*corev1.Node{node("b"), node("a", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "node.cilium.io/agent-not-ready", Effect: corev1.TaintEffectNoSchedule}}
		})}, Pods: []*corev1.Pod{pod("x", "b", "3")}}, pod("new", "", "1"), "b", ""},
		{"a cordon", snapshot.Snapshot{Nodes: []*corev1.Node{node("b"), node("a", func(n *corev1.Node) { n.Spec.Unschedulable = true })},
			Pods: []*corev1.Pod{pod("x", "b", "3")}}, pod("new", "", "1"), "b", ""},
		{"anti-affinity of the pod", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{pod("x", "a", "0"), pod("y", "b", "3", func(p *corev1.Pod) { p.Labels = nil })},
		}, pod("new", "", "1", apart), "b", ""},
		{"anti-affinity of the pod that is there", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{pod("x", "a", "0", apart), pod("y", "b", "3", func(p *corev1.Pod) { p.Labels = nil })},
		}, pod("new", "", "1"), "b", ""},
		{"affinity", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{pod("x", "b", "3")},
		}, pod("new", "", "1", func(p *corev1.Pod) {
			apart(p)
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
		}), "b", ""},
		{"topology spread", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a", zone("1")), node("b", zone("2"))}, Pods: []*corev1.Pod{pod("x", "a", "0"), pod("y", "b", "3", func(p *corev1.Pod) { p.Labels = nil })},
		}, pod("new", "", "1", func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			}}
		}), "b", ""},
		{"a port of the host", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a"), node("b")},
			Pods:  []*corev1.Pod{pod("x", "a", "0", port), pod("y", "b", "3")},
		}, pod("new", "", "1", port), "b", ""},
		{"a volume's zone", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a", zone("1")), node("b", zone("2"))}, Pods: []*corev1.Pod{pod("y", "b", "3")},
			PersistentVolumes: []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"2"}}},
				}}}},
			}}},
			PersistentVolumeClaims: []*corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
				Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
			}},
		}, pod("new", "", "1", claim), "b", ""},
		{"a node's number of volumes", volumes(), pod("new", "", "1", claim), "b", ""},
		{"a claim that does not exist", snapshot.Snapshot{Nodes: []*corev1.Node{node("a")}}, pod("new", "", "1", claim), "", `persistentvolumeclaim "data" not found`},
		{"no room", snapshot.Snapshot{
			Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{pod("x", "a", "3500m"), pod("y", "b", "3500m")},
		}, pod("new", "", "1"), "", "0/2 nodes are available: 2 Insufficient cpu"},
		{"pods that have ended hold no room", snapshot.Snapshot{Nodes: []*corev1.Node{node("a")}, Pods: []*corev1.Pod{pod("x", "a", "4", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
		})}}, pod("new", "", "1"), "a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := mustNew(t, &tt.s)
			for seed := range uint64(5) {
				e.Reset(seed)
				got, err := e.Schedule(tt.pod)
				if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
					t.Fatalf("seed %d: error %v, want %q in it", seed, err, tt.err)
				}
				if got != tt.want {
					t.Fatalf("seed %d: on node %q, want %q", seed, got, tt.want)
				}
			}
		})
	}
}

// volumes are nodes that take one volume of a driver each. On node a a pod has one; node b has little CPU left.
func volumes() snapshot.Snapshot {
	s := snapshot.Snapshot{Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{
		pod("x", "a", "0", func(p *corev1.Pod) {
			claim(p)
			p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "other"
		}), pod("y", "b", "3"),
	}}
	for _, name := range []string{"data", "other"} {
		s.PersistentVolumes = append(s.PersistentVolumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}},
		}})
		s.PersistentVolumeClaims = append(s.PersistentVolumeClaims, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		})
	}
	for _, name := range []string{"a", "b"} {
		one := int32(1)
		s.CSINodes = append(s.CSINodes, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: "csi.example.com", NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &one}}},
		}})
	}
	return s
}

func port(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 8080, ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
}

func mustNew(t *testing.T, s *snapshot.Snapshot) *engine.Engine {
	t.Helper()
	e, err := engine.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What was done is in force at once, and Reset takes all of it back.
func TestResetTakesBack(t *testing.T) {
	x, y := pod("x", "a", "3"), pod("y", "b", "3", apart)
	e := mustNew(t, &snapshot.Snapshot{Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{x, y}})
	large := pod("new", "", "2", func(p *corev1.Pod) { p.Labels = nil })
	fits := func() string {
		got, err := e.Schedule(large)
		if unfit := (*engine.Unschedulable)(nil); err != nil && !errors.As(err, &unfit) {
			t.Fatal(err)
		}
		return got
	}
	if got := fits(); got != "" {
		t.Fatalf("at first it fits on %q, want nowhere", got)
	}
	if err := e.Remove(x, "a"); err != nil {
		t.Fatal(err)
	}
	if got := fits(); got != "a" {
		t.Fatalf("when x has left it fits on %q, want a", got)
	}
	e.Cordon("a", true)
	if got := fits(); got != "" {
		t.Fatalf("when a is cordoned, too, it fits on %q, want nowhere", got)
	}
	if err := e.Remove(x, "a"); err == nil {
		t.Error("a pod that has left can be removed again")
	}
	e.Reset(1)
	if got := fits(); got != "" {
		t.Errorf("after Reset it fits on %q, want nowhere", got)
	}
	if err := e.Remove(x, "a"); err != nil {
		t.Error("after Reset:", err)
	}
}

// A pod that was bound, or has left, counts for those that come after it: also in what the scheduler knows of all nodes.
func TestBoundPodsCount(t *testing.T) {
	e := mustNew(t, &snapshot.Snapshot{Nodes: []*corev1.Node{node("a"), node("b", func(n *corev1.Node) { n.Spec.Unschedulable = true })}})
	lone := pod("lone", "", "1", apart)
	fits := func(want bool) {
		t.Helper()
		if _, err := e.Schedule(pod("new", "", "1")); (err == nil) != want {
			t.Errorf("error %v, want none: %v", err, want)
		}
	}
	fits(true)
	if err := e.Bind(lone, "a"); err != nil {
		t.Fatal(err)
	}
	fits(false)
	if err := e.Remove(lone, "a"); err != nil {
		t.Fatal(err)
	}
	fits(true)
	if err := e.Bind(lone, "nowhere"); err == nil {
		t.Error("a pod can be bound to a node that does not exist")
	}
}

// Equal seeds give equal decisions, and other seeds others: of 20 equal nodes not always the same one wins.
func TestSeedsDecideTies(t *testing.T) {
	s := &snapshot.Snapshot{}
	for _, name := range strings.Split("abcdefghijklmnopqrst", "") {
		s.Nodes = append(s.Nodes, node(name))
	}
	seen := map[string]bool{}
	first, second := mustNew(t, s), mustNew(t, s)
	for seed := range uint64(20) {
		first.Reset(seed)
		second.Reset(seed)
		a, err := first.Schedule(pod("new", "", "1"))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := second.Schedule(pod("new", "", "1"))
		if a != b {
			t.Errorf("seed %d gives %s, and then %s", seed, a, b)
		}
		seen[a] = true
	}
	if len(seen) < 5 {
		t.Errorf("20 seeds choose among %d of 20 equal nodes, want 5 and more", len(seen))
	}
}
