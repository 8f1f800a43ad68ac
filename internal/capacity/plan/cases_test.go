package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/sample"
	"temper.dev/temper/internal/capacity/snapshot"
)

// two makes nodes a and b of four CPUs, a pod of one CPU on a, and one of two on b: a can be emptied, unless a case says why not.
func two(change ...func(*corev1.Pod)) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{
		Name: sample.Namespace, Labels: map[string]string{v1alpha1.HighestTierLabel: "critical"},
	}}}}
	sample.Node(s, "a", 4, "16Gi")
	sample.Node(s, "b", 4, "16Gi")
	sample.Pod(s, "x", "a", "1", "1Gi", change...)
	sample.Pod(s, "y", "b", "2", "1Gi", hold)
	return s
}

// hold keeps a pod, and so its node.
func hold(p *corev1.Pod) { annotate("karpenter.sh/do-not-disrupt", "true")(p) }

func annotate(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[key] = value
	}
}

func volume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: source}} }
}

var emptyDir = volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})

func owner(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { sample.Own(p, kind, "owner") }
}

func bare(p *corev1.Pod) { p.OwnerReferences = nil }

func system(p *corev1.Pod) { *p.Spec.Priority = 2_000_000_000 }

// critical makes a pod critical, where the policy of withCritical is.
func critical(p *corev1.Pod) { p.Spec.PriorityClassName = "latency" }

func withCritical(s *snapshot.Snapshot) {
	s.TierPolicies = []*v1alpha1.TierPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.TierPolicySpec{
		Rules: []v1alpha1.TierRule{{Name: "latency", PriorityClassNames: []string{"latency"}, Tier: "critical"}},
	}}}
}

// Each case is about node a: it is emptied, or the reasons why not have the words.
func TestCases(t *testing.T) {
	sidecar := func(p *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: &always, Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
		}}}
	}
	tests := []struct {
		name   string
		s      *snapshot.Snapshot
		change func(*snapshot.Snapshot)
		admit  func(*corev1.Pod) (*corev1.Pod, error)
		keeps  string // "": a is emptied
	}{
		{"a pod that fits elsewhere", two(), nil, nil, ""},
		{"nothing but a DaemonSet's pod", two(owner("DaemonSet")), nil, nil, ""},
		{"a static pod", two(bare, annotate(corev1.MirrorPodAnnotationKey, "x")), nil, nil, ""},
		{"a pod that has ended", two(bare, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), nil, nil, ""},

		// T5: sidecars are init containers that stay.
		{"T5: a native sidecar adds to what the pod needs", two(sidecar), nil, nil, "Insufficient cpu"},
		{"T5: a plain init container does not", two(sidecar, func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }), nil, nil, ""},
		// T6: a pod counts as it would be admitted now.
		{"T6: a template without requests, of which admission makes more than there is", two(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = nil
		}), nil, limitRange, "Insufficient cpu"},
		{"T6: a request that admission lowers", two(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
		}), nil, halved, ""},
		{"T6: a pod that would not be admitted", two(), nil, func(*corev1.Pod) (*corev1.Pod, error) {
			return nil, errors.New("exceeded quota")
		}, "pod work/x: it would not be admitted anew: exceeded quota"},
		// T7: two budgets.
		{"T7: a pod under two PodDisruptionBudgets", two(sample.Label("web")), func(s *snapshot.Snapshot) {
			sample.Budget(s, "one", "web", 1)
			sample.Budget(s, "two", "web", 1)
		}, nil, "pod work/x: it is under 2 PodDisruptionBudgets (one, two)"},
		{"a budget that allows one", two(sample.Label("web")), func(s *snapshot.Snapshot) { sample.Budget(s, "one", "web", 1) }, nil, ""},
		{"a budget that allows none", two(sample.Label("web")), func(s *snapshot.Snapshot) { sample.Budget(s, "one", "web", 0) }, nil,
			"PodDisruptionBudget one allows no disruption (1 of 1 pods are healthy, 1 must be)"},
		{"a budget whose status is old", two(sample.Label("web")), func(s *snapshot.Snapshot) { sample.Budget(s, "one", "web", 1).Generation = 2 }, nil, "is of an earlier version"},
		{"a budget of another namespace", two(sample.Label("web")), func(s *snapshot.Snapshot) { sample.Budget(s, "one", "web", 0).Namespace = "other" }, nil, ""},
		// T8: somebody else's cordon.
		{"T8: a user's cordon", two(), func(s *snapshot.Snapshot) { s.Nodes[0].Spec.Unschedulable = true }, nil, "somebody has cordoned it"},
		{"T8: the other node is cordoned by a user", two(), func(s *snapshot.Snapshot) { s.Nodes[1].Spec.Unschedulable = true }, nil, "2 node(s) were unschedulable"},
		{"T8: an autoscaler is taking the node away", two(), func(s *snapshot.Snapshot) { sample.Taint("ToBeDeletedByClusterAutoscaler")(s.Nodes[0]) }, nil, "somebody is taking it away already"},
		// T9: who forbids it.
		{"T9: do-not-disrupt", two(annotate("karpenter.sh/do-not-disrupt", "true")), nil, nil, `its annotation karpenter.sh/do-not-disrupt is "true"`},
		{"T9: do-not-disrupt for some time", two(annotate("karpenter.sh/do-not-disrupt", "4h")), nil, nil, `do-not-disrupt is "4h"`},
		{"T9: do-not-disrupt that is false", two(annotate("karpenter.sh/do-not-disrupt", "false")), nil, nil, ""},
		{"T9: safe-to-evict that is false", two(annotate("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")), nil, nil, "safe-to-evict"},
		// T10: nothing is gained by filling an empty node.
		{"T10: the other node is empty", two(), func(s *snapshot.Snapshot) { s.Pods = s.Pods[:1] }, nil, "fits nowhere else"},

		{"a bare pod", two(bare), nil, nil, "it has no controller"},
		{"a bare pod whose owner allows it", two(bare, annotate("cluster-autoscaler.kubernetes.io/safe-to-evict", "true")), nil, nil, ""},
		{"a Job's pod", two(owner("Job")), nil, nil, "its Job would start its work from the beginning"},
		{"a pod of the system", two(system), nil, nil, "its priority is one of Kubernetes' own"},
		{"local storage", two(emptyDir), nil, nil, "what it has stored in volume scratch would be lost"},
		{"local storage that its owner gives up", two(emptyDir, annotate("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", "logs,scratch")), nil, nil, ""},
		{"local storage in memory", two(volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})), nil, nil, ""},
		{"a folder of the host", two(volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}})), nil, nil, "would be lost"},
		{"resource claims", two(func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }), nil, nil, "resource claims"},
		{"another scheduler", two(func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }), nil, nil, "scheduler volcano places it"},
		{"a pod that tolerates a cordon", two(sample.Tolerate(corev1.TaintNodeUnschedulable)), nil, nil, "tolerates the cordon"},

		{"no room", two(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
		}), nil, nil, "pod work/x fits nowhere else: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable"},
		{"no room but by preemption", two(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
			*p.Spec.Priority = 1000
		}), nil, nil, "Insufficient cpu"},
		{"the volume's zone", two(), func(s *snapshot.Snapshot) {
			sample.Zone("1")(s.Nodes[0])
			sample.Zone("2")(s.Nodes[1])
			sample.Volume(s, "1")(s.Pods[0])
		}, nil, "node(s) didn't match PersistentVolume's node affinity"},
		{"anti-affinity of a pod that stays", two(sample.Label("web")), func(s *snapshot.Snapshot) { sample.Apart("web")(s.Pods[1]) }, nil, "anti-affinity"},
		{"a taint", two(), func(s *snapshot.Snapshot) { sample.Taint("dedicated")(s.Nodes[1]) }, nil, "untolerated taint"},
		{"a node that is starting", two(), func(s *snapshot.Snapshot) { sample.Taint("node.cilium.io/agent-not-ready")(s.Nodes[0]) }, nil, "it is still starting"},
		{"a node that is not Ready", two(), func(s *snapshot.Snapshot) { s.Nodes[0].Status.Conditions = nil }, nil, "it is not Ready"},
		{"a node of the control plane", two(), func(s *snapshot.Snapshot) { s.Nodes[0].Labels["node-role.kubernetes.io/control-plane"] = "" }, nil, "it runs the control plane"},
		{"a node that is being deleted", two(), func(s *snapshot.Snapshot) { s.Nodes[0].DeletionTimestamp = &metav1.Time{} }, nil, "it is being deleted already"},
		{"a pod that waits has room on this node alone", two(), func(s *snapshot.Snapshot) { sample.Pod(s, "waits", "", "3", "1Gi") }, nil, "pod work/waits waits for a node, and would go to node a"},
		{"a pod that waits has room elsewhere, too", two(), func(s *snapshot.Snapshot) { sample.Pod(s, "waits", "", "1", "1Gi") }, nil, ""},
		{"a pod that waits has room nowhere", two(), func(s *snapshot.Snapshot) { sample.Pod(s, "waits", "", "9", "1Gi") }, nil, ""},
		{"a pending pod that would come in", two(sample.Label("web")), func(s *snapshot.Snapshot) {
			sample.Zone("1")(s.Nodes[0])
			sample.Zone("2")(s.Nodes[1])
			sample.Node(s, "c", 4, "16Gi", sample.Zone("1"), sample.Taint("dedicated"))
			sample.Pod(s, "z", "c", "1", "1Gi", hold)
			sample.Pod(s, "waits", "", "1", "1Gi", sample.Label("lone"), sample.Tolerate("dedicated"), func(p *corev1.Pod) {
				sample.Apart("web")(p)
				p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = "topology.kubernetes.io/zone"
				p.Spec.NodeSelector = map[string]string{"topology.kubernetes.io/zone": "1"}
			})
		}, nil, "would let pod work/waits in, which is pending"},

		{"a node without an agent", two(), func(s *snapshot.Snapshot) { s.TemperNodes = s.TemperNodes[1:] }, nil, "no agent of Temper reports for it"},
		{"a node in safe mode", two(), func(s *snapshot.Snapshot) { notEnforced(s, 0) }, nil, "the tiers are not enforced on it: SafeModeNode"},
		{"the other node is not enforced, and takes pods that are not critical", two(), func(s *snapshot.Snapshot) { notEnforced(s, 1) }, nil, ""},
		{"a critical pod does not go where tiers are not enforced", two(critical), func(s *snapshot.Snapshot) {
			withCritical(s)
			notEnforced(s, 1)
		}, nil, "critical pod work/x would go to node b, where it is not protected: the tiers are not enforced on it: SafeModeNode"},
		{"critical demand fits in the cores but one", two(critical), func(s *snapshot.Snapshot) {
			withCritical(s)
			critical(s.Pods[1])
		}, nil, ""},
		{"critical demand beyond the cores but one", two(critical), func(s *snapshot.Snapshot) {
			withCritical(s)
			critical(s.Pods[1])
			s.Cores["b"] = 3
		}, nil, "where critical pods then want 3 CPUs, and its physical cores but one are 2"},
		{"of a node whose cores are not known half of the CPUs count", two(critical), func(s *snapshot.Snapshot) {
			withCritical(s)
			critical(s.Pods[1])
			delete(s.Cores, "b")
		}, nil, "want 3 CPUs, and its physical cores but one are 1"},
		{"measured use of a day counts instead of requests", two(critical), func(s *snapshot.Snapshot) {
			withCritical(s)
			critical(s.Pods[1])
			s.Cores["b"] = 3
			s.Use = map[string]snapshot.Use{"work/y": {CPU: resource.MustParse("500m"), Hours: 24}}
		}, nil, ""},
		{"measured use of less than a day does not", two(critical), func(s *snapshot.Snapshot) {
			withCritical(s)
			critical(s.Pods[1])
			s.Cores["b"] = 3
			s.Use = map[string]snapshot.Use{"work/y": {CPU: resource.MustParse("500m"), Hours: 23.9}}
		}, nil, "want 3 CPUs"},
		{"measured use above the request counts, too", two(critical), func(s *snapshot.Snapshot) {
			withCritical(s)
			critical(s.Pods[1])
			s.Use = map[string]snapshot.Use{"work/y": {CPU: resource.MustParse("3"), Hours: 200}}
		}, nil, "want 4 CPUs, and its physical cores but one are 3"},
		{"a class's priority as it is now", two(critical), func(s *snapshot.Snapshot) {
			withCritical(s)
			s.TierPolicies[0].Spec.Rules[0] = v1alpha1.TierRule{Name: "high", Priority: &v1alpha1.PriorityRange{Min: new(int32)}, Tier: "critical"}
			s.PriorityClasses = []*schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "latency"}, Value: -1}}
			s.Cores["b"] = 3
		}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(tt.s)
			}
			p, err := plan.Make(t.Context(), tt.s, plan.Options{Admit: tt.admit})
			if err != nil {
				t.Fatal(err)
			}
			if why := reasons(p, "a"); tt.keeps == "" && why != "" || !strings.Contains(why, tt.keeps) {
				t.Fatalf("a is kept for %q, want %q in it", why, tt.keeps)
			}
			if got, want := slices.Contains(p.Nodes(), "a"), tt.keeps == ""; got != want {
				t.Errorf("a is emptied: %v, want %v", got, want)
			}
			var want int64
			for _, node := range p.Nodes() {
				if want += 4000; node == "b" && len(tt.s.Pods) > 1 {
					t.Error("b is emptied, whose pod must not be moved")
				}
			}
			if p.SavedMilliCPU != want || p.NodesBefore-p.NodesAfter != len(p.Nodes()) {
				t.Errorf("it saves %d thousandths of a vCPU with %d of %d nodes left, want %d", p.SavedMilliCPU, p.NodesAfter, p.NodesBefore, want)
			}
		})
	}
}

// selects lets a pod go only to nodes of that name.
func selects(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": node} }
}

// A node is emptied only where that does not depend on chance. Of two equal nodes the scheduler takes either for x; when it
// is b, there is no room for y any more, which can go nowhere else.
func TestChanceIsNotCountedOn(t *testing.T) {
	s := &snapshot.Snapshot{}
	for _, name := range []string{"a", "b", "c", "e"} {
		sample.Node(s, name, 4, "16Gi")
	}
	sample.Pod(s, "x", "a", "2", "1Gi")
	sample.Pod(s, "y", "a", "2", "1Gi", selects("b"))
	sample.Pod(s, "stays-b", "b", "1", "1Gi", hold)
	sample.Pod(s, "stays-c", "c", "1", "1Gi", hold)
	// The bound has hope for e, too, but there is no node for z: so sets are tried of which one node has to be given up.
	sample.Pod(s, "z", "e", "2", "1Gi", selects("nowhere"))
	for seed := range uint64(10) {
		p, err := plan.Make(t.Context(), s, plan.Options{Seed: 100 * seed})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Nodes()) > 0 || !strings.Contains(reasons(p, "a"), "pod work/y fits nowhere else") {
			t.Errorf("seed %d: %v are emptied, a is kept for %q", 100*seed, p.Nodes(), reasons(p, "a"))
		}
	}
}

// What seems easiest cannot be done, and the bound says that one node is all: then it is the other one.
func TestTheOtherNode(t *testing.T) {
	s := &snapshot.Snapshot{}
	for _, name := range []string{"a", "b", "e"} {
		sample.Node(s, name, 4, "16Gi")
	}
	sample.Pod(s, "x", "a", "2", "1Gi")
	sample.Pod(s, "stays", "b", "2", "1Gi", hold)
	sample.Pod(s, "z", "e", "1", "1Gi", selects("nowhere"))
	p, err := plan.Make(t.Context(), s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Nodes(), []string{"a"}) || p.AtLeast != 2 {
		t.Errorf("%v are emptied, with a bound of %d; want a, and 2", p.Nodes(), p.AtLeast)
	}
}

func notEnforced(s *snapshot.Snapshot, node int) {
	s.TemperNodes[node].Status.Conditions[0].Status, s.TemperNodes[node].Status.Conditions[0].Reason = metav1.ConditionFalse, "SafeModeNode"
}

// limitRange gives containers without a request one of three CPUs.
func limitRange(p *corev1.Pod) (*corev1.Pod, error) {
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Resources.Requests == nil {
			p.Spec.Containers[i].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
		}
	}
	return p, nil
}

func halved(p *corev1.Pod) (*corev1.Pod, error) {
	request := p.Spec.Containers[0].Resources.Requests
	request[corev1.ResourceCPU] = *resource.NewMilliQuantity(request.Cpu().MilliValue()/2, resource.DecimalSI)
	return p, nil
}

func reasons(p *plan.Plan, node string) string {
	for _, kept := range p.Kept {
		if kept.Node == node {
			return strings.Join(kept.Reasons, "; ")
		}
	}
	return ""
}

// A plan that may empty some nodes only empties no other, and says so.
func TestOnlyTheseNodes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		only    []string
		emptied []string
		keeps   string // node a
	}{
		{"any", nil, []string{"a"}, ""},
		{"the one that can be", []string{"a"}, []string{"a"}, ""},
		{"the one that cannot be", []string{"b"}, nil, "none of those that may be emptied"},
		{"none", []string{}, nil, "none of those that may be emptied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := plan.Make(t.Context(), two(), plan.Options{Nodes: tt.only})
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Nodes(); !slices.Equal(got, tt.emptied) {
				t.Errorf("emptied %v, want %v", got, tt.emptied)
			}
			for _, k := range p.Kept {
				if k.Node == "a" && !strings.Contains(strings.Join(k.Reasons, "; "), tt.keeps) {
					t.Errorf("node a is kept by %q, want %q", k.Reasons, tt.keeps)
				}
			}
		})
	}
}
