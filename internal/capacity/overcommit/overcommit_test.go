package overcommit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/snapshot"
)

func good() Policy {
	return Policy{Namespaces: []string{"shop"}, Factor: 0.5, Floor: 10, Tiers: []tier.Tier{tier.Standard, tier.Background}}
}

func compiled(t *testing.T, p Policy) *Rules {
	t.Helper()
	r, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*Policy)
		fault  string // "": it is good
	}{
		{"as it is", func(*Policy) {}, ""},
		{"factor 1", func(p *Policy) { p.Factor = 1 }, ""},
		{"the smallest factor", func(p *Policy) { p.Factor = 0.001 }, ""},
		{"factor 0", func(p *Policy) { p.Factor = 0 }, "factor: 0 is not above 0"},
		{"a negative factor", func(p *Policy) { p.Factor = -0.5 }, "factor: -0.5 is not above 0"},
		{"a factor above 1", func(p *Policy) { p.Factor = 1.001 }, "at most 1"},
		{"a factor that no annotation could name", func(p *Policy) { p.Factor = 0.33333 }, "more than three decimals"},
		{"a factor of almost nothing", func(p *Policy) { p.Factor = 0.0001 }, "more than three decimals"},
		{"floor 0", func(p *Policy) { p.Floor = 0 }, "floor: 0 mCPU is not from 1"},
		{"no namespace", func(p *Policy) { p.Namespaces = nil }, "namespaces: there is none"},
		{"a namespace of no such name", func(p *Policy) { p.Namespaces = []string{"a b"} }, `namespaces: "a b"`},
		{"kube-system", func(p *Policy) { p.Namespaces = []string{"kube-system"} }, "kube-system are never lowered"},
		{"Temper's own", func(p *Policy) { p.Namespaces = []string{"temper-system"} }, "temper-system are never lowered"},
		{"no tier", func(p *Policy) { p.Tiers = nil }, "tiers: there is none"},
		{"critical", func(p *Policy) { p.Tiers = []tier.Tier{tier.Critical} }, "tier critical are never lowered"},
		{"system", func(p *Policy) { p.Tiers = []tier.Tier{tier.System} }, "tier system are never lowered"},
		{"an autoscaled Deployment", func(p *Policy) {
			p.Autoscaled = []snapshot.Workload{{Namespace: "shop", Kind: "Deployment", Name: "web"}}
		}, ""},
		{"an autoscaled Rollout", func(p *Policy) { p.Autoscaled = []snapshot.Workload{{Namespace: "shop", Kind: "Rollout", Name: "web"}} }, "autoscaled: Rollout shop/web"},
		{"an invalid TierPolicy", func(p *Policy) {
			p.TierPolicies = []*v1alpha1.TierPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Spec: v1alpha1.TierPolicySpec{Loans: "always"}}}
		}, "TierPolicy bad"},
	} {
		p := good()
		c.change(&p)
		_, err := Compile(p)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.fault)
		}
	}
}

// of makes a container's resources of CPU requests and limits; "" is none.
func of(request, limit string) corev1.ResourceRequirements {
	own := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	if request != "" {
		own.Requests[corev1.ResourceCPU] = resource.MustParse(request)
	}
	if limit != "" {
		own.Limits[corev1.ResourceCPU] = resource.MustParse(limit)
	}
	return own
}

func withMemory(own corev1.ResourceRequirements) corev1.ResourceRequirements {
	own.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
	return own
}

// podOf is a pod of containers a, b, and so on.
func podOf(own ...corev1.ResourceRequirements) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for i, resources := range own {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: string(rune('a' + i)), Resources: resources})
	}
	return pod
}

// requestsOf are a pod's CPU requests: of containers, of init containers after "|", of its own after "/".
func requestsOf(pod *corev1.Pod) string {
	text := func(own corev1.ResourceRequirements) string {
		if q, ok := own.Requests[corev1.ResourceCPU]; ok {
			return " " + q.String()
		}
		return " -"
	}
	var out string
	for _, c := range pod.Spec.Containers {
		out += text(c.Resources)
	}
	for _, c := range pod.Spec.InitContainers {
		out += " |" + text(c.Resources)
	}
	if pod.Spec.Resources != nil {
		out += " /" + text(*pod.Spec.Resources)
	}
	return strings.TrimPrefix(out, " ")
}

func TestAdmit(t *testing.T) {
	init := func(pod *corev1.Pod, sidecar bool, own corev1.ResourceRequirements) *corev1.Pod {
		c := corev1.Container{Name: fmt.Sprint("i", len(pod.Spec.InitContainers)), Resources: own}
		if sidecar {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		return pod
	}
	whole := func(pod *corev1.Pod, own corev1.ResourceRequirements) *corev1.Pod {
		pod.Spec.Resources = &own
		return pod
	}
	says := func(pod *corev1.Pod, annotation string) *corev1.Pod {
		pod.Annotations = map[string]string{OriginalAnnotation: annotation, FactorAnnotation: "0.5", "other": "stays"}
		return pod
	}
	limits := func(item corev1.LimitRangeItem) []corev1.LimitRange {
		return []corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Name: "none"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "cpu"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}
	}
	one := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	for _, c := range []struct {
		what     string
		pod      *corev1.Pod
		limits   []corev1.LimitRange
		requests string
		original string
		left     string
	}{
		{"a request", podOf(of("1", "")), nil, "500m", "a=1000m", ""},
		{"some of many", podOf(of("1", ""), of("", ""), of("10m", ""), of("0", "")), nil, "500m - 10m 0", "a=1000m", ""},
		{"rounded up", podOf(of("333m", "")), nil, "167m", "a=333m", ""},
		{"not below the floor", podOf(of("11m", "")), nil, "10m", "a=11m", ""},
		{"below the floor", podOf(of("9m", ""), of("1m", "")), nil, "9m 1m", "", "above the floor of 10 mCPU"},
		{"none at all", podOf(of("", "")), nil, "-", "", "above the floor"},
		{"of its limit, by default", podOf(of("", "2")), nil, "1", "a=2000m", ""},
		{"equal to its limit, in a Burstable pod", podOf(withMemory(of("2", "2")), of("1", "")), nil, "1 500m", "a=2000m,b=1000m", ""},
		{"Guaranteed", podOf(withMemory(of("2", "2"))), nil, "2", "", "Guaranteed"},
		{"Guaranteed, by default", podOf(withMemory(of("", "2"))), nil, "-", "", "Guaranteed"},
		{"Guaranteed but for an init container", init(podOf(withMemory(of("2", "2"))), false, of("1", "")), nil, "1 | 500m", "a=2000m,i0=1000m", ""},
		{"an init container and a sidecar", init(init(podOf(of("1", "")), false, of("3", "")), true, of("200m", "")), nil, "500m | 1500m | 100m", "a=1000m,i0=3000m,i1=200m", ""},
		{"beyond measure", podOf(of("1000001", ""), of("1", "")), nil, "1000001 1", "", "more than 1000000 CPUs"},

		{"the pod's own", whole(podOf(of("1", "")), of("3", "")), nil, "500m / 1500m", "a=1000m,/=3000m", ""},
		{"the pod's own, held up by the floor", whole(podOf(of("10m", ""), of("10m", "")), of("24m", "")), nil, "10m 10m / 20m", "/=24m", ""},
		{"the pod's own, by default what containers want", whole(podOf(of("1", "")), of("", "4")), nil, "500m / 500m", "a=1000m,/=1000m", ""},
		{"the pod's own, by default what an init container wants beside a sidecar", whole(init(init(podOf(of("100m", "")), true, of("200m", "")), false, of("1", "")), of("", "4")),
			nil, "50m | 100m | 500m / 600m", "a=100m,i0=200m,i1=1000m,/=1200m", ""},
		{"the pod's own, by default its limit", whole(podOf(of("", "")), of("", "4")), nil, "- / 2", "/=4000m", ""},
		{"Guaranteed by the pod's own", whole(podOf(of("1", "")), withMemory(of("4", "4"))), nil, "1 / 4", "", "Guaranteed"},
		{"not Guaranteed by the pod's own", whole(podOf(withMemory(of("1", "1"))), of("4", "")), nil, "500m / 2", "a=1000m,/=4000m", ""},

		{"a minimum", podOf(of("1", "")), limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: one("501m")}), "1", "", "LimitRange cpu would refuse it: container a would request 500 mCPU"},
		{"exactly a minimum", podOf(of("1", "")), limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: one("500m")}), "500m", "a=1000m", ""},
		{"a ratio", podOf(of("1", "1")), limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: one("1.9")}), "1", "", "beyond the ratio"},
		{"exactly a ratio", podOf(of("1", "1")), limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: one("2")}), "500m", "a=1000m", ""},
		{"a maximum", podOf(of("1", "1")), limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: one("1")}), "500m", "a=1000m", ""},
		{"a pod's minimum", podOf(of("1", ""), of("1", "")), limits(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: one("1001m")}), "1 1", "", "the pod would request 1000 mCPU"},
		{"a pod's ratio", podOf(of("1", "1"), of("1", "1")), limits(corev1.LimitRangeItem{Type: corev1.LimitTypePod, MaxLimitRequestRatio: one("1.5")}), "1 1", "", "the pod would have a limit of 2000 mCPU and request 1000"},
		{"an init container's minimum", init(podOf(of("2", "")), false, of("1", "")), limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: one("600m")}), "2 | 1", "", "container i0"},

		{"a copy", says(podOf(of("500m", "")), "a=1000m"), nil, "500m", "a=1000m", ""},
		{"a copy, changed", says(podOf(of("500m", ""), of("600m", "")), "a=1000m,b=1000m"), nil, "500m 300m", "a=1000m,b=600m", ""},
		{"a copy of the pod's own", says(whole(podOf(of("500m", "")), of("1500m", "")), "a=1000m,/=3000m"), nil, "500m / 1500m", "a=1000m,/=3000m", ""},
		{"an annotation that would leave all as it is", says(podOf(of("500m", "")), "a=500m"), nil, "250m", "a=500m", ""},
		{"one of less than it requests", says(podOf(of("500m", "")), "a=250m"), nil, "250m", "a=500m", ""},
		{"one beyond the limit", says(podOf(of("500m", "800m")), "a=1000m"), nil, "250m", "a=500m", ""},
		{"one of a pod that would be Guaranteed", says(podOf(withMemory(of("500m", "1"))), "a=1000m"), nil, "250m", "a=500m", ""},
		{"one that says two things", says(podOf(of("500m", "")), "a=1000m,a=999m"), nil, "250m", "a=500m", ""},
		{"one that is none", says(podOf(of("500m", "")), "a=1000m, b"), nil, "250m", "a=500m", ""},
		{"one of another container", says(podOf(of("500m", "")), "b=1000m"), nil, "250m", "a=500m", ""},
		{"one of the pod, below what containers want", says(whole(podOf(of("500m", ""), of("500m", "")), of("1", "")), "a=1000m,b=1000m,/=1500m"), nil, "500m 500m / 1", "a=1000m,b=1000m", ""},
		{"one on a pod that is left alone", says(podOf(withMemory(of("2", "2"))), "a=4000m"), nil, "2", "", "Guaranteed"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := compiled(t, good())
			in := Namespace{Name: "shop", LimitRanges: c.limits}
			before := c.pod.DeepCopy()
			got, outcome := r.Admit(c.pod, in)
			if !equality.Semantic.DeepEqual(c.pod, before) {
				t.Error("the pod that was given has changed")
			}
			if requests := requestsOf(got); requests != c.requests {
				t.Errorf("requests: got %s, want %s", requests, c.requests)
			}
			factor := ""
			if c.original != "" {
				factor = "0.5"
			}
			if a := got.Annotations; a[OriginalAnnotation] != c.original || a[FactorAnnotation] != factor || a["other"] != before.Annotations["other"] {
				t.Errorf("annotations: got %v, want %q with factor %q", a, c.original, factor)
			}
			if (outcome.Left == "") != (c.left == "") || !strings.Contains(outcome.Left, c.left) {
				t.Errorf("left alone: got %q, want %q", outcome.Left, c.left)
			}
			if again, _ := r.Admit(got, in); !equality.Semantic.DeepEqual(again, got) {
				t.Errorf("once more: got %s, want %s", requestsOf(again), c.requests)
			}
		})
	}
}

func TestExemptions(t *testing.T) {
	p := good()
	p.Tiers = []tier.Tier{tier.Standard}
	p.Autoscaled = []snapshot.Workload{{Namespace: "shop", Kind: "Deployment", Name: "web"}}
	p.TierPolicies = []*v1alpha1.TierPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: v1alpha1.TierPolicySpec{
		Rules: []v1alpha1.TierRule{{Name: "gold", PriorityClassNames: []string{"gold"}, Tier: "critical"}, {Name: "high", Priority: &v1alpha1.PriorityRange{Min: new(int32(9))}, Tier: "critical"}}}}}
	r := compiled(t, p)
	owned := func(version, kind, name string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, Controller: new(true)}}
			pod.Labels = map[string]string{"pod-template-hash": "1a"}
		}
	}
	critical := map[string]string{v1alpha1.HighestTierLabel: "critical"}
	for _, c := range []struct {
		what   string
		change func(*corev1.Pod)
		in     Namespace
		left   string
	}{
		{"a bare pod", func(*corev1.Pod) {}, Namespace{Name: "shop"}, ""},
		{"another namespace", func(*corev1.Pod) {}, Namespace{Name: "bank"}, "namespace bank does not take part"},
		{"a ReplicaSet's", owned("apps/v1", "ReplicaSet", "api-1a"), Namespace{Name: "shop"}, ""},
		{"a Job's", owned("batch/v1", "Job", "j"), Namespace{Name: "shop"}, ""},
		{"a StatefulSet's", owned("apps/v1", "StatefulSet", "web"), Namespace{Name: "shop"}, ""},
		{"a DaemonSet's", owned("apps/v1", "DaemonSet", "d"), Namespace{Name: "shop"}, "it is of a DaemonSet"},
		{"a custom resource's", owned("postgres.example/v1", "StatefulSet", "db"), Namespace{Name: "shop"}, "owned by StatefulSet db"},
		{"one that a custom resource owns beside", func(pod *corev1.Pod) {
			owned("postgres.example/v1", "Cluster", "db")(pod)
			pod.OwnerReferences[0].Controller = nil
		}, Namespace{Name: "shop"}, ""},
		{"a static one", func(pod *corev1.Pod) { pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "h"} }, Namespace{Name: "shop"}, "static pod"},
		{"an autoscaled Deployment's", owned("apps/v1", "ReplicaSet", "web-1a"), Namespace{Name: "shop"}, "Deployment web is scaled by CPU"},
		{"critical by class", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "gold" }, Namespace{Name: "shop", Labels: critical}, "its tier is critical (PriorityClass gold)"},
		{"critical by class, where the namespace may not", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "gold" }, Namespace{Name: "shop"}, ""},
		{"critical by priority", func(pod *corev1.Pod) { pod.Spec.Priority = new(int32(9)) }, Namespace{Name: "shop", Labels: critical}, "its tier is critical (priority 9)"},
		{"of a priority that is not known", func(pod *corev1.Pod) { pod.Spec.Priority = nil }, Namespace{Name: "shop"}, "priority is not known"},
		{"system, whatever its namespace", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "system-node-critical" }, Namespace{Name: "shop"}, "its tier is system"},
		{"of a tier that is not covered", func(pod *corev1.Pod) { pod.Labels = map[string]string{v1alpha1.TierLabel: "background"} }, Namespace{Name: "shop"}, "its tier is background"},
		{"with too many containers", func(pod *corev1.Pod) {
			for range maxContainers {
				pod.Spec.Containers = append(pod.Spec.Containers, pod.Spec.Containers[0])
			}
		}, Namespace{Name: "shop"}, "more than 64 containers"},
	} {
		pod := podOf(of("1", ""))
		pod.Spec.Priority = new(int32(0))
		c.change(pod)
		got, outcome := r.Admit(pod, c.in)
		if (outcome.Left == "") != (c.left == "") || !strings.Contains(outcome.Left, c.left) {
			t.Errorf("%s: left alone for %q, want %q", c.what, outcome.Left, c.left)
		}
		if request := got.Spec.Containers[0].Resources.Requests.Cpu().String(); (request == "1") != (c.left != "") {
			t.Errorf("%s: requests %s", c.what, request)
		}
		if outcome.Left == "" && (outcome.Before != 1000 || outcome.After != 500) {
			t.Errorf("%s: %d mCPU became %d, want 1000 and 500", c.what, outcome.Before, outcome.After)
		}
	}
}

// Whatever an annotation claims, its pod requests no more and no less than one that asked for the same honestly.
func TestNothingIsGainedByAnAnnotation(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		p := good()
		p.Factor = float64(1+random.IntN(999)) / 1000
		p.Floor = int64(1 + random.IntN(50))
		r := compiled(t, p)
		request, claim := 1+random.Int64N(400), 1+random.Int64N(400)
		if random.IntN(2) == 0 {
			request = r.lower(claim)
		}
		pod := podOf(of(fmt.Sprint(request, "m"), ""))
		pod.Annotations = map[string]string{OriginalAnnotation: fmt.Sprintf("a=%dm", claim)}
		got, _ := r.Admit(pod, Namespace{Name: "shop"})
		honest := podOf(of(fmt.Sprint(claims(got.Annotations[OriginalAnnotation])["a"], "m"), ""))
		if got.Annotations[OriginalAnnotation] == "" {
			honest = podOf(of(fmt.Sprint(request, "m"), ""))
		}
		want, _ := r.Admit(honest, Namespace{Name: "shop"})
		if requestsOf(got) != requestsOf(want) || got.Annotations[OriginalAnnotation] != want.Annotations[OriginalAnnotation] {
			t.Fatalf("seed %d: %d mCPU by annotation %d, factor %v, floor %d: got %s %v, want %s %v",
				seed, request, claim, p.Factor, p.Floor, requestsOf(got), got.Annotations, requestsOf(want), want.Annotations)
		}
		if after := got.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(); after < 1 || after > request {
			t.Fatalf("seed %d: %d mCPU by annotation %d, factor %v, floor %d: got %d", seed, request, claim, p.Factor, p.Floor, after)
		}
	}
}

func TestReport(t *testing.T) {
	p := good()
	p.Namespaces = []string{"shop", "batch"}
	r := compiled(t, p)
	named := func(namespace, name string, pod *corev1.Pod) *corev1.Pod {
		pod.Namespace, pod.Name = namespace, name
		return pod
	}
	noted := func(pod *corev1.Pod, annotation string) *corev1.Pod {
		pod.Annotations = map[string]string{OriginalAnnotation: annotation, FactorAnnotation: "0.5"}
		return pod
	}
	ended := named("shop", "ended", podOf(of("8", "")))
	ended.Status.Phase = corev1.PodSucceeded
	restarting := podOf(of("2", ""))
	restarting.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	s := &snapshot.Snapshot{Pods: []*corev1.Pod{
		named("shop", "lowered", noted(podOf(of("1", "")), "a=2000m")),
		named("shop", "missed", podOf(of("3", ""))),
		named("shop", "guaranteed", podOf(withMemory(of("4", "4")))),
		named("shop", "resized", noted(podOf(of("1500m", "")), "a=2000m")),
		named("shop", "half-way", annotated(podOf(of("2", "")), "a=2000m", "").Pod),
		named("shop", "restarting", restarting),
		named("batch", "bounded", podOf(of("1", ""))),
		named("batch", "bounded-later", noted(podOf(of("500m", "")), "a=1000m")),
		named("bank", "elsewhere", podOf(of("9", ""))),
		ended,
	}}
	for _, name := range []string{"shop", "batch", "bank"} {
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	limits := []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "batch", Name: "cpu"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}}
	var got strings.Builder
	r.Report(s, limits).Write(&got)
	const want = `NAMESPACE  POD            STATE       ASKED CPUS  REQUESTED CPUS  WHY
shop       lowered        lowered     2           1               
shop       missed         missed      3           3               it was created while the policy was not in force
shop       guaranteed     left alone  4           4               its QoS class is Guaranteed, and would change
shop       resized        changed     1.5         1.5             it says that factor 0.5 was applied to a=2000m, and the policy makes something else of it: it was resized, or the policy has changed
shop       half-way       missed      2           2               its repair was interrupted
shop       restarting     missed      2           2               it was created while the policy was not in force; repair leaves it alone: a resize would restart container a, as its resizePolicy asks for
batch      bounded        left alone  1           1               LimitRange cpu would refuse it: container a would request 500 mCPU, and the minimum is 1000
batch      bounded-later  changed     0.5         0.5             it says that factor 0.5 was applied to a=1000m, and the policy makes something else of it: it was resized, or the policy has changed
8 pods asked for 16 CPUs and request 15: 1 given. 1 lowered, 2 left alone, 3 missed, 2 changed.
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestAutoscaled(t *testing.T) {
	share, value := autoscalingv2.MetricTarget{AverageUtilization: new(int32(50))}, autoscalingv2.MetricTarget{AverageValue: new(resource.MustParse("1"))}
	byResource := func(name corev1.ResourceName, target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: name, Target: target}}
	}
	byContainer := autoscalingv2.MetricSpec{ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: corev1.ResourceCPU, Container: "a", Target: share}}
	for _, c := range []struct {
		what, namespace, kind string
		metrics               []autoscalingv2.MetricSpec
		known, unknown        int
	}{
		{"by CPU", "shop", "Deployment", []autoscalingv2.MetricSpec{byResource(corev1.ResourceMemory, share), byResource(corev1.ResourceCPU, share)}, 1, 0},
		{"by a container's CPU", "shop", "StatefulSet", []autoscalingv2.MetricSpec{byContainer}, 1, 0},
		{"by default", "shop", "Deployment", nil, 1, 0},
		{"by CPU time", "shop", "Deployment", []autoscalingv2.MetricSpec{byResource(corev1.ResourceCPU, value)}, 0, 0},
		{"by memory", "shop", "Deployment", []autoscalingv2.MetricSpec{byResource(corev1.ResourceMemory, share)}, 0, 0},
		{"of another namespace", "bank", "Deployment", nil, 0, 0},
		{"of another kind", "shop", "Rollout", nil, 0, 1},
	} {
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: c.kind, Name: "web"}, Metrics: c.metrics}}
		known, unknown := Autoscaled([]*autoscalingv2.HorizontalPodAutoscaler{h}, []string{"shop"})
		if len(known) != c.known || len(unknown) != c.unknown {
			t.Errorf("%s: known %v, unknown %v; want %d and %d", c.what, known, unknown, c.known, c.unknown)
		}
	}
}
