package advice

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/sample"
	"temper.dev/temper/internal/capacity/snapshot"
)

func TestWhatAPodCouldRequest(t *testing.T) {
	for _, c := range []struct {
		what       string
		pod        Pod
		strict     bool
		autoscaled bool
		want       float64 // NaN: none
		why        string
	}{
		{"nothing is known", Pod{}, false, false, math.NaN(), "not enough data: 0 h of 24"},
		{"a moment is no data", Pod{MomentCPUs: new(0.1)}, false, false, math.NaN(), "not enough data: 0 h of 24"},
		{"almost a day", Pod{Hours: 23.99, HighestMinuteCPUs: new(0.9), P95CPUs: new(0.2)}, false, false, math.NaN(), "not enough data: 23 h of 24"},
		{"a day", Pod{Hours: 24, HighestMinuteCPUs: new(0.9), P95CPUs: new(0.2)}, false, false, 0.2, ""},
		{"a critical pod keeps its highest minute", Pod{Hours: 24, HighestMinuteCPUs: new(0.9), P95CPUs: new(0.2)}, true, false, 0.9, ""},
		{"a critical pod, almost a day", Pod{Hours: 23.99, HighestMinuteCPUs: new(0.9), P95CPUs: new(0.2)}, true, false, math.NaN(), "not enough data: 23 h of 24"},
		{"recommended", Pod{Hours: 30, RecommendedCPUs: new(0.3)}, false, false, 0.3, ""},
		{"recommended since this morning", Pod{Hours: 5, RecommendedCPUs: new(0.3)}, false, false, math.NaN(), "not enough data: 5 h of 24"},
		{"recommended for a critical pod", Pod{Hours: 30, RecommendedCPUs: new(0.3)}, true, false, math.NaN(), "does not say what its highest minute was"},
		{"measured before recommended", Pod{Hours: 30, RecommendedCPUs: new(0.3), HighestMinuteCPUs: new(0.9), P95CPUs: new(0.2)}, false, false, 0.2, ""},
		{"an autoscaler counts in requests", Pod{Hours: 30, HighestMinuteCPUs: new(0.9), P95CPUs: new(0.2)}, false, true, math.NaN(), "HorizontalPodAutoscaler"},
	} {
		got, why := advise(&c.pod, c.strict, c.autoscaled)
		number := math.NaN()
		if got != nil {
			number = *got
		}
		if !strings.Contains(why, c.why) || (why == "") != (c.why == "") || number != c.want && !(math.IsNaN(number) && math.IsNaN(c.want)) {
			t.Errorf("%s: %v, %q; want %v, %q", c.what, number, why, c.want, c.why)
		}
	}
}

func TestShapes(t *testing.T) {
	all, daemons := want{cpu: 60_000, memory: 100 * gib, pods: 50, critical: 6_000}, want{cpu: 1_000, memory: gib, pods: 2, critical: 0}
	largest := want{cpu: 4_000, memory: 8 * gib, critical: 2_000}
	for _, c := range []struct {
		what  string
		shape Shape
		nodes int
		binds string
		why   string
	}{
		{"CPUs bind: 60 by 15", Shape{CPUs: 16, MemoryGiB: 64, Pods: 110, cores: 8}, 4, "cpu", ""},
		{"a little less room takes one more", Shape{CPUs: 15.9, MemoryGiB: 64, Pods: 110, cores: 8}, 5, "cpu", ""},
		{"memory binds: 100 by 11.5", Shape{CPUs: 32, MemoryGiB: 12.5, Pods: 110, cores: 16}, 9, "memory", ""},
		{"places bind: 50 by 6", Shape{CPUs: 64, MemoryGiB: 256, Pods: 8, cores: 32}, 9, "pods", ""},
		{"critical pods bind: 6 by 2", Shape{CPUs: 64, MemoryGiB: 256, Pods: 110, cores: 3}, 3, "critical", ""},
		{"the largest pod does not fit", Shape{CPUs: 4, MemoryGiB: 64, Pods: 110, cores: 8}, 0, "cpu", "one pod wants more cpu"},
		{"the largest critical pod does not fit", Shape{CPUs: 64, MemoryGiB: 64, Pods: 110, cores: 2}, 0, "critical", "one pod wants more critical"},
	} {
		c.shape.count(all, daemons, largest)
		if c.shape.Nodes != c.nodes || c.shape.Binds != c.binds || !strings.Contains(c.shape.Why, c.why) || (c.shape.Why == "") != (c.why == "") {
			t.Errorf("%s: %d nodes by %s, %q; want %d by %s, %q", c.what, c.shape.Nodes, c.shape.Binds, c.shape.Why, c.nodes, c.binds, c.why)
		}
	}
}

func TestParseShape(t *testing.T) {
	for _, c := range []struct {
		text string
		want Shape // CPUs 0: refused
	}{
		{"16x64Gi", Shape{CPUs: 16, MemoryGiB: 64, Pods: 110, cores: 8}},
		{"4x8Gix30", Shape{CPUs: 4, MemoryGiB: 8, Pods: 30, cores: 2}},
		{"16", Shape{}}, {"x64Gi", Shape{}}, {"0x64Gi", Shape{}}, {"-1x64Gi", Shape{}}, {"NaNx64Gi", Shape{}}, {"16x0", Shape{}}, {"16x64", Shape{}}, {"16x64Gix0", Shape{}}, {"16x64Gix1x1", Shape{}},
	} {
		got, err := ParseShape(c.text)
		if got != c.want && err == nil || (err == nil) != (c.want.CPUs > 0) {
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
}

// shop is a cluster with critical pods that break the sizing rule on one node of two, and use that is known of some.
func shop(enforced bool) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.HighestTierLabel: "critical"}}}, {ObjectMeta: metav1.ObjectMeta{Name: sample.Namespace}}},
		TierPolicies: []*v1alpha1.TierPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.TierPolicySpec{
			Rules: []v1alpha1.TierRule{{Name: "critical", PriorityClassNames: []string{"temper-critical"}, Tier: "critical"}}}}},
	}
	for _, name := range []string{"a", "b", "c"} {
		sample.Node(s, name, 8, "32Gi")
	}
	s.Cores = map[string]int{"a": 8}
	critical := func(p *corev1.Pod) { p.Spec.PriorityClassName = "temper-critical" }
	sample.Pod(s, "web-1", "a", "2", "1Gi", sample.In("shop"), critical)
	sample.Pod(s, "web-2", "b", "4", "1Gi", sample.In("shop"), critical)
	sample.Pod(s, "batch", "c", "2", "1Gi")
	sample.Pod(s, "scaled", "c", "1", "1Gi")
	s.Autoscalers = []*autoscalingv2.HorizontalPodAutoscaler{{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "ReplicaSet", Name: "scaled"},
		Metrics: []autoscalingv2.MetricSpec{{Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{AverageUtilization: new(int32(50))}}}},
	}}}
	s.Use = map[string]snapshot.Use{
		"shop/web-1":  {CPU: resource.MustParse("1500m"), P95: resource.MustParse("500m"), Hours: 48},
		"work/batch":  {CPU: resource.MustParse("1900m"), P95: resource.MustParse("400m"), Hours: 48},
		"work/scaled": {CPU: resource.MustParse("100m"), P95: resource.MustParse("100m"), Hours: 48},
		"shop/web-2":  {CPU: resource.MustParse("100m"), P95: resource.MustParse("100m"), Hours: 3},
	}
	if !enforced {
		s.TemperNodes = nil
	}
	return s
}

// What containers were measured to use is not all that a pod requests.
func TestRequestWith(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	requests := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	two := []corev1.Container{{Resources: requests("1")}, {Resources: requests("1")}}
	for _, c := range []struct {
		what string
		spec corev1.PodSpec
		want int64
	}{
		{"two containers", corev1.PodSpec{Containers: two}, 200},
		{"an init container", corev1.PodSpec{Containers: two, InitContainers: []corev1.Container{{Resources: requests("3")}}}, 3000},
		{"a sidecar is measured with the others", corev1.PodSpec{Containers: two, InitContainers: []corev1.Container{{Resources: requests("3"), RestartPolicy: &always}}}, 200},
		{"overhead", corev1.PodSpec{Containers: two, Overhead: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}, 700},
		{"a request of the whole pod", corev1.PodSpec{Containers: two, Resources: new(requests("4"))}, 200},
	} {
		if got := requestWith(&corev1.Pod{Spec: c.spec}, 0.2); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

func TestWhatIsRequestedTooLittleCounts(t *testing.T) {
	s := shop(true)
	s.Use["work/batch"] = snapshot.Use{CPU: resource.MustParse("9"), P95: resource.MustParse("7"), Hours: 48}
	a, err := Make(t.Context(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(a.Namespaces, func(n Namespace) bool { return n.Namespace == sample.Namespace })
	if n := a.Namespaces[i]; n.GiveBackCPUs == nil || *n.GiveBackCPUs != -5 || n.PodsTooLow != 1 {
		t.Errorf("%+v, want -5 CPUs and one pod", n)
	}
	if said := strings.Join(a.verdict(), " "); !strings.Contains(said, "Namespaces request 4.5 CPUs too little") {
		t.Errorf("%q, want 4.5 CPUs too little: 5 of work, less 0.5 of shop", said)
	}
}

func TestPodsThatWaitAreSaid(t *testing.T) {
	s := shop(true)
	sample.Pod(s, "waits", "", "1", "1Gi")
	a, err := Make(t.Context(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(a.Notes, "; "); !strings.Contains(said, "1 pods wait for a node") {
		t.Errorf("%q, want that one waits", said)
	}
}

func TestWhoseRequestsAreCountedIn(t *testing.T) {
	metric := func(m autoscalingv2.MetricSpec) []autoscalingv2.MetricSpec { return []autoscalingv2.MetricSpec{m} }
	share, value := autoscalingv2.MetricTarget{AverageUtilization: new(int32(50))}, autoscalingv2.MetricTarget{AverageValue: new(resource.MustParse("1"))}
	for _, c := range []struct {
		what    string
		metrics []autoscalingv2.MetricSpec
		want    bool
	}{
		{"none, which is the API server's choice", nil, true},
		{"the share of CPU", metric(autoscalingv2.MetricSpec{Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: share}}), true},
		{"the share of a container's CPU", metric(autoscalingv2.MetricSpec{ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: "cpu", Target: share}}), true},
		{"an amount of CPU", metric(autoscalingv2.MetricSpec{Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: value}}), false},
		{"the share of memory", metric(autoscalingv2.MetricSpec{Resource: &autoscalingv2.ResourceMetricSource{Name: "memory", Target: share}}), false},
	} {
		h := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: c.metrics}}
		if got := len(autoscaled(&snapshot.Snapshot{Autoscalers: []*autoscalingv2.HorizontalPodAutoscaler{h}})) == 1; got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestTableAndJSON(t *testing.T) {
	for name, enforced := range map[string]bool{"enforced": true, "before": false} {
		a, err := Make(t.Context(), shop(enforced), Options{Notes: []string{"something is left out"}})
		if err != nil {
			t.Fatal(err)
		}
		var text, asJSON bytes.Buffer
		a.Write(&text)
		fixture.Golden(t, name+".txt", text.String())
		encoder := json.NewEncoder(&asJSON)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(a); err != nil {
			t.Fatal(err)
		}
		fixture.Golden(t, name+".json", asJSON.String())
	}
}

func TestNodesThatSayWhyTheyAreNotEnforcedStay(t *testing.T) {
	s := shop(true)
	for _, report := range s.TemperNodes {
		report.Status.Conditions[0].Status, report.Status.Conditions[0].Reason = metav1.ConditionFalse, "NoSchedExt"
	}
	a, err := Make(t.Context(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !a.IfEnforced || a.Plan.NodesAfter != 3 {
		t.Errorf("if enforced %t, %d nodes; want true, 3", a.IfEnforced, a.Plan.NodesAfter)
	}
}

func TestOneNode(t *testing.T) {
	a, err := Make(t.Context(), shop(true), Options{})
	if err != nil {
		t.Fatal(err)
	}
	one, known := a.Of("b")
	if !known || len(one.Nodes) != 1 || len(one.Pods) != 1 || one.Pods[0].Pod != "shop/web-2" || len(one.Plan.Kept)+len(one.Plan.Emptied) != 1 {
		t.Errorf("known %t: %+v, plan %+v", known, one, one.Plan)
	}
	if _, known := a.Of("z"); known {
		t.Error("a node that there is not is known")
	}
}

// What is not known counts as the most that it could be.
func TestCriticalDemandIsStrict(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*snapshot.Snapshot)
		want   float64
	}{
		{"by requests", func(s *snapshot.Snapshot) { s.Use = nil }, 2},
		{"measured for long", func(s *snapshot.Snapshot) {}, 1.5},
		{"measured for three hours, less", func(s *snapshot.Snapshot) { s.Use["shop/web-1"] = snapshot.Use{CPU: resource.MustParse("1"), Hours: 3} }, 2},
		{"measured for three hours, more", func(s *snapshot.Snapshot) { s.Use["shop/web-1"] = snapshot.Use{CPU: resource.MustParse("5"), Hours: 3} }, 5},
		{"more at one moment", func(s *snapshot.Snapshot) {
			s.Use, s.Moment = nil, map[string]resource.Quantity{"shop/web-1": resource.MustParse("3")}
		}, 3},
	} {
		s := shop(true)
		c.change(s)
		tiers, err := plan.TiersOf(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := cpus(tiers.Nodes[0].Demand); got != c.want || tiers.Of(s.Pods[0]).Tier != tier.Critical {
			t.Errorf("%s: %v CPUs, want %v", c.what, got, c.want)
		}
	}
}

// What others have written moves no cursor, and ends no line.
func TestTableIsPrintable(t *testing.T) {
	a := &Advice{Plan: &Plan{Kept: []Kept{{"a", []string{"an agent says \x1b[2J\nb"}}}}, Notes: []string{"\x1b[2J"}}
	var text bytes.Buffer
	a.Write(&text)
	if got := text.String(); strings.Contains(got, "\x1b") || !strings.Contains(got, `"an agent says \x1b[2J\nb"`) {
		t.Errorf("%q", got)
	}
}

// A page of many nodes is one file that loads nothing, and escapes names that others have given.
func TestPage(t *testing.T) {
	s, err := sample.Random(3)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Make(t.Context(), s, Options{Notes: []string{"<script>alert(1)</script>"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * mostRows {
		a.Namespaces = append(a.Namespaces, Namespace{Namespace: strings.Repeat("n", i%60), Why: "not known"})
	}
	a.Namespaces[1].Why = "<b>because</b>"
	var page bytes.Buffer
	if err := a.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"<script", "<b>", "http://", "https://", "<link", "<img"} {
		if strings.Contains(page.String(), never) {
			t.Errorf("the page has %q", never)
		}
	}
	for _, want := range []string{"<svg", "prefers-color-scheme:dark", "201 more rows are in the JSON", "&lt;script&gt;", `aria-label="What namespaces could give back, in CPUs"`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
