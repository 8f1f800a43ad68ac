package overcommit

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/snapshot"
)

// noting is a pod of one container that requests this, with these annotations.
func noting(request, original, factor string) *corev1.Pod {
	pod := podOf(of(request, ""))
	pod.Spec.Priority = new(int32(0))
	return annotated(pod, original, factor).Pod
}

// said is what a pod requests, and its annotations.
func said(pod *corev1.Pod) string {
	return strings.TrimSpace(strings.Join([]string{pod.Spec.Containers[0].Resources.Requests.Cpu().String(), pod.Annotations[OriginalAnnotation], pod.Annotations[FactorAnnotation]}, " "))
}

// through are the states of a pod until no step is left, and why nothing more was done.
func through(t *testing.T, pod *corev1.Pod, next func(*corev1.Pod) Change) (states []string, left string) {
	t.Helper()
	for range 10 {
		change := next(pod)
		if change.Step == Done {
			return states, change.Left
		}
		after := pod.DeepCopy() // an API server takes of a step what it is of, and nothing else
		if change.Step == Note {
			after.Annotations = change.Pod.Annotations
		} else {
			after.Spec = change.Pod.Spec
		}
		if equality.Semantic.DeepEqual(after, pod) {
			t.Fatalf("step %d changes nothing of %s", change.Step, said(pod))
		}
		pod = after
		states = append(states, said(pod))
	}
	t.Fatalf("no end: %v", states)
	return nil, ""
}

func TestSteps(t *testing.T) {
	restarting := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
		return pod
	}
	beside := restarting(noting("10m", "", ""))
	beside.Spec.Containers[0].Name = "small"
	beside.Spec.Containers = append(noting("2", "", "").Spec.Containers, beside.Spec.Containers...)
	deleted := noting("2", "", "")
	deleted.DeletionTimestamp = &metav1.Time{}
	ended := noting("2", "c=4000m", "0.5")
	ended.Status.Phase = corev1.PodFailed
	defaults := []corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Name: "young"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}}}}
	p := good()
	p.Factor, p.Before = 0.25, []Lowering{{0.5, 10}, {0.5, 1}}
	r := compiled(t, p)
	for _, c := range []struct {
		what   string
		next   func(*corev1.Pod, Namespace) Change
		pod    *corev1.Pod
		limits []corev1.LimitRange
		states []string
		left   string
	}{
		{"repair", r.Repair, noting("2", "", ""), nil, []string{"2 a=2000m", "500m a=2000m", "500m a=2000m 0.25"}, ""},
		{"repair, interrupted after the note", r.Repair, noting("2", "a=2000m", ""), nil, []string{"500m a=2000m", "500m a=2000m 0.25"}, ""},
		{"repair, interrupted after the resize", r.Repair, noting("500m", "a=2000m", ""), nil, []string{"500m a=2000m 0.25"}, ""},
		{"repair, resized by another after the note", r.Repair, noting("3", "a=2000m", ""), nil, []string{"3 a=3000m", "750m a=3000m", "750m a=3000m 0.25"}, ""},
		{"repair, below the floor after the note", r.Repair, noting("10m", "a=2000m", ""), nil, []string{"10m"}, ""},
		{"repair of a lowered one", r.Repair, noting("500m", "a=2000m", "0.25"), nil, nil, ""},
		{"repair of one that an earlier factor lowered", r.Repair, noting("1", "a=2000m", "0.5"), nil, nil, ""},
		{"repair of one that was resized", r.Repair, noting("2", "a=2000m", "0.25"), nil, nil, ""},
		{"repair of one with a factor alone", r.Repair, noting("2", "", "0.25"), nil, []string{"2 a=2000m", "500m a=2000m", "500m a=2000m 0.25"}, ""},
		{"repair of one with a factor alone, that is left alone", r.Repair, noting("10m", "", "0.25"), nil, []string{"10m"}, ""},
		{"repair of one that is left alone", r.Repair, noting("10m", "", ""), nil, nil, ""},
		{"repair of one that is deleted", r.Repair, deleted, nil, nil, ""},
		{"repair of one that would restart", r.Repair, restarting(noting("2", "", "")), nil, nil, "would restart container a"},
		{"repair of one that would restart, and is below the floor", r.Repair, restarting(noting("10m", "", "")), nil, nil, ""},
		{"repair of one beside a container that would restart, and stays", r.Repair, beside, nil, []string{"2 a=2000m", "500m a=2000m", "500m a=2000m 0.25"}, ""},
		{"repair under a younger LimitRange", r.Repair, noting("2", "", ""), defaults, nil, "the defaults of LimitRange young"},

		{"restore", r.Restore, noting("500m", "a=2000m", "0.25"), nil, []string{"2 a=2000m 0.25", "2"}, ""},
		{"restore, interrupted after the resize", r.Restore, noting("2", "a=2000m", "0.25"), nil, []string{"2"}, ""},
		{"restore, repair interrupted after the note", r.Restore, noting("2", "a=2000m", ""), nil, []string{"2"}, ""},
		{"restore, repair interrupted after the resize", r.Restore, noting("500m", "a=2000m", ""), nil, []string{"2 a=2000m", "2"}, ""},
		{"restore of an earlier factor", r.Restore, noting("1", "a=2000m", "0.5"), nil, []string{"2 a=2000m 0.5", "2"}, ""},
		{"restore of an earlier floor", r.Restore, noting("5m", "a=10m", "0.5"), nil, []string{"10m a=10m 0.5", "10m"}, ""},
		{"restore of one that was never lowered", r.Restore, noting("2", "", ""), nil, nil, ""},
		{"restore of one that was resized", r.Restore, noting("700m", "a=2000m", "0.25"), nil, nil, "was resized"},
		{"restore of a factor that never was", r.Restore, noting("1", "a=10000m", "0.1"), nil, nil, "another policy"},
		{"restore of an original of another container", r.Restore, noting("500m", "b=2000m", "0.25"), nil, nil, "another policy"},
		{"restore of two originals, one of no container", r.Restore, noting("500m", "a=2000m,b=2000m", "0.25"), nil, nil, "another policy"},
		{"restore of an original that is none", r.Restore, noting("500m", "much", "0.25"), nil, nil, "another policy"},
		{"restore of a factor alone", r.Restore, noting("500m", "", "0.25"), nil, nil, "another policy"},
		{"restore of one that would restart", r.Restore, restarting(noting("500m", "a=2000m", "0.25")), nil, nil, "would restart container a"},
		{"restore under a younger LimitRange", r.Restore, noting("500m", "a=2000m", "0.25"), defaults, nil, "the defaults of LimitRange young"},
		{"restore of one that has ended", r.Restore, ended, nil, nil, ""},
	} {
		in := Namespace{Name: "shop", LimitRanges: c.limits}
		states, left := through(t, c.pod, func(pod *corev1.Pod) Change { return c.next(pod, in) })
		if !reflect.DeepEqual(states, c.states) || (left == "") != (c.left == "") || !strings.Contains(left, c.left) {
			t.Errorf("%s: got %q, left %q; want %q, left %q", c.what, states, left, c.states, c.left)
		}
	}
}

// Whoever writes an original, at whatever time, gets by restore what asking for it would have given, or nothing.
func TestNothingIsGainedByRestore(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	gained := 0
	for range 20_000 {
		p := good()
		p.Factor, p.Floor = float64(1+random.IntN(999))/1000, int64(1+random.IntN(50))
		r := compiled(t, p)
		request, claim := 1+random.Int64N(400), 1+random.Int64N(400)
		if random.IntN(2) == 0 {
			request = r.lower(claim)
		}
		factor := []string{r.factor(), "0.1", ""}[random.IntN(3)]
		change := r.Restore(noting(fmt.Sprint(request, "m"), fmt.Sprintf("a=%dm", claim), factor), Namespace{Name: "shop"})
		if change.Step != Resize {
			continue
		}
		gained++
		honest, _ := r.Admit(noting(fmt.Sprint(claim, "m"), "", ""), Namespace{Name: "shop"})
		if got := change.Pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(); got != claim || honest.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() != request {
			t.Fatalf("seed %d: factor %v, floor %d: %d mCPU by original %d and factor %q: got %d; asking for it gives %s", seed, p.Factor, p.Floor, request, claim, factor, got, said(honest))
		}
	}
	if gained < 1000 {
		t.Errorf("seed %d: %d originals were believed", seed, gained)
	}
}

func TestPlanRestore(t *testing.T) {
	r := compiled(t, good())
	on := func(node, name, request, original string, priority int32) corev1.Pod {
		pod := noting(request, original, map[bool]string{true: "0.5"}[original != ""])
		pod.Namespace, pod.Name, pod.Spec.NodeName, pod.Spec.Priority = "shop", name, node, new(priority)
		return *pod
	}
	elsewhere := on("full", "elsewhere", "1", "a=2000m", 0)
	elsewhere.Namespace = "bank"
	ended := on("full", "ended", "1", "a=2000m", 0)
	ended.Status.Phase = corev1.PodSucceeded
	overhead := on("roomy", "overhead", "1", "a=2000m", 0)
	overhead.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	// A resize that was put off: the kubelet has not taken the old request back yet.
	deferred := on("roomy", "deferred", "1", "", 0)
	deferred.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}
	pods := []corev1.Pod{
		on("full", "large", "1", "a=2000m", 0), on("full", "small", "100m", "a=200m", 0), on("full", "urgent", "500m", "a=1000m", 5),
		on("full", "plain", "1", "", 0), on("full", "resized", "1100m", "a=2000m", 0), on("full", "interrupted", "300m", "a=300m", 0),
		elsewhere, ended, overhead, deferred, on("roomy", "fits", "1", "a=2000m", 0),
		on("", "waiting", "1", "a=2000m", 0), on("gone", "stray", "1", "a=2000m", 0), on("quiet", "plain", "1", "", 0),
	}
	node := func(name, cpus string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)}}}
	}
	got := r.PlanRestore([]corev1.Node{node("full", "5700m"), node("roomy", "8"), node("quiet", "1")}, pods, map[string]Namespace{"shop": {Name: "shop"}})
	want := RestorePlan{Pods: 8, MissingCPUs: 2.9, Nodes: []NodePlan{
		{Name: "", RequestedCPUs: 1, AfterCPUs: 2, Fit: []string{"shop/waiting"}, WouldNotFit: []string{}},
		{Name: "full", AllocatableCPUs: 5.7, RequestedCPUs: 5, AfterCPUs: 6.6, MissingCPUs: 0.9, Fit: []string{"shop/urgent", "shop/interrupted", "shop/small"}, WouldNotFit: []string{"shop/large"},
			LeftAlone: []LeftPod{{"shop/resized", `its original "a=2000m" and factor "0.5" do not belong to what it requests: it was resized, or another policy has lowered it`}}},
		{Name: "gone", RequestedCPUs: 1, AfterCPUs: 2, MissingCPUs: 2, Fit: []string{}, WouldNotFit: []string{"shop/stray"}},
		{Name: "roomy", AllocatableCPUs: 8, RequestedCPUs: 5.25, AfterCPUs: 7.25, Fit: []string{"shop/fits", "shop/overhead"}, WouldNotFit: []string{}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// What an admission policy was made of comes back from it, also once it lowers nothing.
func TestStored(t *testing.T) {
	p := good()
	p.Tiers = []tier.Tier{tier.Standard}
	p.Autoscaled = []snapshot.Workload{{Namespace: "shop", Kind: "Deployment", Name: "web"}}
	p.TierPolicies = []*v1alpha1.TierPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TierPolicySpec{
		Rules: []v1alpha1.TierRule{{Name: "high", Priority: &v1alpha1.PriorityRange{Min: new(int32(9))}, Tier: "critical"}}}}}
	r := compiled(t, p)
	for name, c := range map[string]struct {
		object any
		want   *Rules
		lowers bool
	}{
		"lowering": {r.Manifests()[2], r, true}, "keeping": {r.Manifests()[0], r, true},
		"closed": {r.Closing()[2], r.Closed(), false}, "keeping, closed": {r.Closing()[0], r, true},
	} {
		got, err := Stored(c.object.(metav1.Object))
		if err != nil || !reflect.DeepEqual(got, c.want) || got.Lowers() != c.lowers {
			t.Errorf("%s: %v, got %+v, want %+v", name, err, got, c.want)
		}
	}
	for _, text := range []string{"", "{", `{"namespaces":["shop"],"factor":2,"floor":1,"tiers":["standard"]}`, `{"namespaces":["shop"],"factor":0.5,"floor":1,"tiers":["standard"],"before":[{"factor":0,"floor":1}]}`} {
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{PolicyAnnotation: text}}}
		if got, err := Stored(object); err == nil {
			t.Errorf("%q: got %+v", text, got)
		}
	}
	if _, err := Stored(&corev1.Pod{}); err == nil {
		t.Error("without an annotation: no error")
	}
}

func TestAfter(t *testing.T) {
	p := good()
	p.Namespaces, p.Factor = []string{"shop", "ci"}, 0.5
	first := compiled(t, p)
	p.Namespaces, p.Factor = []string{"shop"}, 0.25
	second, err := compiled(t, p).After(first)
	if err != nil {
		t.Fatal(err)
	}
	p.Namespaces, p.Factor = []string{"ci"}, 0.5
	third, err := compiled(t, p).After(second)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		got    *Rules
		before []Lowering
		left   []string
	}{
		{"another factor, less namespaces", second, []Lowering{{0.5, 10}}, []string{"ci"}},
		{"the first factor again, and the namespace", third, []Lowering{{0.25, 10}}, []string{"shop"}},
	} {
		if !reflect.DeepEqual(c.got.Before, c.before) || !reflect.DeepEqual(c.got.Left, c.left) {
			t.Errorf("%s: got %v and %v, want %v and %v", c.what, c.got.Before, c.got.Left, c.before, c.left)
		}
	}
}
