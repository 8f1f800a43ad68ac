//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/overcommit"
	"temper.dev/temper/internal/capacity/snapshot"
)

var (
	overcommitPods = flag.Int("overcommit-pods", 2000, "how many random pods are admitted with overcommit, and without")
	overcommitSeed = flag.Uint64("overcommit-seed", 0, "their seed; 0: another one each time")
)

// twins are a namespace that takes part in overcommit, and one beside it that has the same and does not.
type twins struct {
	name   string
	labels map[string]string
	limits []corev1.LimitRangeSpec
	quota  corev1.ResourceList
}

func (w twins) with() string    { return "oc-" + w.name }
func (w twins) without() string { return "oc-" + w.name + "-twin" }

func (w twins) namespace() overcommit.Namespace {
	in := overcommit.Namespace{Name: w.with(), Labels: w.labels}
	for i, spec := range w.limits {
		in.LimitRanges = append(in.LimitRanges, corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("limits-", i)}, Spec: spec})
	}
	return in
}

func cpuOf(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// byDefault has containers without CPU get some, so that most pods are taken.
func byDefault(item corev1.LimitRangeItem) corev1.LimitRangeSpec {
	item.Type, item.Default, item.DefaultRequest = corev1.LimitTypeContainer, cpuOf("3"), cpuOf("2")
	return corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}
}

var allTwins = []twins{
	{name: "plain"},
	{name: "critical", labels: map[string]string{highestTier: "critical"}},
	{name: "background", labels: map[string]string{highestTier: "background"}},
	{name: "default", limits: []corev1.LimitRangeSpec{byDefault(corev1.LimitRangeItem{})}},
	{name: "min", limits: []corev1.LimitRangeSpec{byDefault(corev1.LimitRangeItem{Min: cpuOf("30m")})}},
	{name: "max", limits: []corev1.LimitRangeSpec{byDefault(corev1.LimitRangeItem{Max: cpuOf("4")})}},
	{name: "ratio", limits: []corev1.LimitRangeSpec{byDefault(corev1.LimitRangeItem{MaxLimitRequestRatio: cpuOf("5")})}},
	{name: "pods", limits: []corev1.LimitRangeSpec{{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypePod, Min: cpuOf("300m"), MaxLimitRequestRatio: cpuOf("4")}}}}},
	{name: "two", limits: []corev1.LimitRangeSpec{byDefault(corev1.LimitRangeItem{}), byDefault(corev1.LimitRangeItem{Min: cpuOf("30m")})}},
	{name: "quota", quota: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("9"), corev1.ResourcePods: resource.MustParse("9")}},
}

// overcommitRules are for all twins. The workload named here has its autoscaler.
func overcommitRules(t *testing.T) *overcommit.Rules {
	t.Helper()
	p := overcommit.Policy{
		Factor: 0.5, Floor: 10, Tiers: []tier.Tier{tier.Standard}, EnforcedOnly: true,
		TierPolicies: []*v1alpha1.TierPolicy{defaultPolicy(t).from, {ObjectMeta: metav1.ObjectMeta{Name: "of other nodes"}, Spec: v1alpha1.TierPolicySpec{
			Rules: []v1alpha1.TierRule{
				{Name: "quoted", PriorityClassNames: []string{`it's a "%d" class`}, Tier: "critical"},
				{Name: "high", Priority: &v1alpha1.PriorityRange{Min: new(int32(500)), Max: new(int32(1000))}, Tier: "critical"},
				{Name: "low", Priority: &v1alpha1.PriorityRange{Max: new(int32(-500))}, Tier: "background"},
			},
		}}},
	}
	for _, w := range allTwins {
		p.Namespaces = append(p.Namespaces, w.with())
		p.Autoscaled = append(p.Autoscaled, snapshot.Workload{Namespace: w.with(), Kind: "Deployment", Name: "scaled"})
	}
	r, err := overcommit.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// makeTwins makes the namespaces of all of them, with what is in them.
func makeTwins(t *testing.T, c client.Client, all []twins) {
	t.Helper()
	for _, w := range all {
		for _, name := range []string{w.with(), w.without()} {
			err := c.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{})
			if err == nil {
				continue // another test has made it
			}
			namespace(t, name, w.labels)
			var objects []client.Object
			for i, spec := range w.limits {
				objects = append(objects, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprint("limits-", i)}, Spec: spec})
			}
			if w.quota != nil {
				objects = append(objects, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: w.quota}})
			}
			for _, object := range objects {
				if err := c.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			if w.quota == nil {
				continue
			}
			// No controller fills in what the quota controller would.
			quota := objects[len(objects)-1].(*corev1.ResourceQuota)
			quota.Status.Hard, quota.Status.Used = w.quota, corev1.ResourceList{}
			for resourceName := range w.quota {
				quota.Status.Used[resourceName] = resource.MustParse("0")
			}
			if err := c.Status().Update(t.Context(), quota); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// overcommitting makes the twins and the policies, and awaits that they are in force.
func overcommitting(t *testing.T) (*overcommit.Rules, client.Client) {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	makeTwins(t, c, allTwins)
	rules := overcommitRules(t)
	for _, object := range rules.Manifests() {
		object := object.(client.Object)
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
	}
	in := func(namespace, request string) string {
		pod := podOf(namespace, "p", "")
		pod.Spec.Containers[0].Resources.Requests = cpuOf(request)
		if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
			return err.Error()
		}
		return pod.Spec.Containers[0].Resources.Requests.Cpu().String()
	}
	eventually(t, "requests are lowered, and a LimitRange's minimum is looked at", func() bool {
		return in("oc-plain", "2") == "1" && in("oc-min", "2") == "1" && in("oc-min", "50m") == "50m"
	})
	return rules, c
}

// Whatever a namespace without overcommit takes, its twin with it takes, and what differs is what Admit says, and CPU requests
// and Temper's annotations only. What is admitted once more is as it was.
func TestOvercommitIsWhatTheRulesSay(t *testing.T) {
	rules, c := overcommitting(t)
	classes := map[string]int32{"oc-high": 700, "oc-low": -700}
	for name, value := range classes {
		class(t, name, value)
	}
	seed := *overcommitSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	random := rand.New(rand.NewPCG(seed, 0))
	count := map[string]int{}
	for n := range *overcommitPods {
		w := pick(random, allTwins)
		pod := randomRequests(random, rules, w)
		said := checkTwins(t, c, rules, w, pod)
		if t.Failed() {
			t.Fatalf("seed %d, pod %d, in %s: %s", seed, n, w.with(), text(pod.Spec, pod.ObjectMeta))
		}
		count[said]++
	}
	t.Logf("seed %d: %v", seed, count)
	// A test of which all pods are refused, or left alone for one reason, says little.
	for _, said := range []string{"lowered", "refused", "its QoS", "its tier", "LimitRange", "it is", "no CPU", "Deployment"} {
		if count[said] < *overcommitPods/400 {
			t.Errorf("seed %d: %d pods of %d are %q", seed, count[said], *overcommitPods, said)
		}
	}
}

// checkTwins admits a pod to both, and says in a word or two what became of it.
func checkTwins(t *testing.T, c client.Client, rules *overcommit.Rules, w twins, pod *corev1.Pod) string {
	t.Helper()
	without, err := admitted(t, c, pod, w.without())
	if err != nil {
		return "refused"
	}
	got, err := admitted(t, c, pod, w.with())
	if err != nil {
		t.Errorf("refused: %v", err)
		return ""
	}
	want, outcome := rules.Admit(without, w.namespace())
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("not what the rules say (%q): got -, want +\n%s", outcome.Left, diff.Diff(got, want))
	}
	if got.Status.QOSClass != without.Status.QOSClass {
		t.Errorf("QoS class %s, without overcommit %s", got.Status.QOSClass, without.Status.QOSClass)
	}
	if a, b := withoutRequests(got), withoutRequests(without); !equality.Semantic.DeepEqual(a, b) {
		t.Errorf("more than CPU requests differs: got -, without overcommit +\n%s", diff.Diff(a, b))
	}
	again, err := admitted(t, c, got, w.with())
	if err != nil || !equality.Semantic.DeepEqual(again, got) {
		t.Errorf("admitted again (%v): got -, first time +\n%s", err, diff.Diff(again, got))
	}
	if outcome.Left == "" {
		return "lowered"
	}
	words := strings.Fields(outcome.Left)
	if words[0] == "LimitRange" || words[0] == "Deployment" {
		return words[0]
	}
	return strings.Join(words[:2], " ")
}

// admitted is the pod as the API server would make it, without what it makes differ each time.
func admitted(t *testing.T, c client.Client, pod *corev1.Pod, namespace string) (*corev1.Pod, error) {
	t.Helper()
	made := pod.DeepCopy()
	made.Namespace = namespace
	made.ResourceVersion, made.UID, made.CreationTimestamp, made.ManagedFields = "", "", metav1.Time{}, nil
	asked := time.Now()
	if err := c.Create(t.Context(), made, client.DryRunAll); err != nil {
		return nil, err
	}
	if made.CreationTimestamp.Time.Before(asked.Add(-time.Minute)) || made.UID == "" {
		t.Errorf("made at %v as %q, asked for at %v", made.CreationTimestamp, made.UID, asked)
	}
	made.Namespace, made.UID, made.CreationTimestamp, made.ManagedFields = "", "", metav1.Time{}, nil
	return made, nil
}

func withoutRequests(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			delete(list[i].Resources.Requests, corev1.ResourceCPU)
			delete(list[i].Resources.Requests, v1alpha1.OvercommitResource)
			delete(list[i].Resources.Limits, v1alpha1.OvercommitResource)
		}
	}
	if own := pod.Spec.Resources; own != nil {
		delete(own.Requests, corev1.ResourceCPU)
	}
	delete(pod.Annotations, overcommit.OriginalAnnotation)
	delete(pod.Annotations, overcommit.FactorAnnotation)
	return pod
}

// randomRequests makes a pod of any shape, with annotations that nobody but Temper should have written.
func randomRequests(random *rand.Rand, rules *overcommit.Rules, w twins) *corev1.Pod {
	pod := podOf("", "p", pick(random, append(make([]string, 20), "temper-background", "temper-critical", "system-node-critical", "system-cluster-critical", "oc-high", "oc-low")))
	pod.Spec.Containers = nil
	guaranteed := random.IntN(6) == 0
	// Large ones alone, which a ratio and a minimum take; small ones alone, which are below the floor.
	large, small := amounts[10:], amounts[:3]
	from := pick(random, [][]string{amounts, amounts, amounts, amounts, large, large, large, small})
	container := func(name string) corev1.Container {
		return corev1.Container{Name: name, Image: "i", Resources: randomOwn(random, from, guaranteed)}
	}
	for i := range 1 + random.IntN(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, container(fmt.Sprint("c", i)))
	}
	for i := range random.IntN(4) {
		init := container(fmt.Sprint("init-", i))
		if random.IntN(2) == 0 {
			init.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, init)
	}
	if random.IntN(4) == 0 {
		own := randomOwn(random, from, random.IntN(4) == 0)
		if request, ok := own.Requests[corev1.ResourceCPU]; ok && random.IntN(4) > 0 { // as much as the containers want
			request.Add(resource.MustParse("12"))
			own.Requests[corev1.ResourceCPU] = request
			delete(own.Limits, corev1.ResourceCPU)
		}
		delete(own.Limits, pick(random, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "none"}))
		pod.Spec.Resources = &own
	}
	randomOwner(random, pod)
	if asks := pick(random, []string{"", "", "", "", "", "", "", "", "", "background", "critical", "urgent"}); asks != "" {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, v1alpha1.TierLabel, asks)
	}
	switch random.IntN(8) {
	case 0: // forged: as if a Guaranteed pod had been lowered
		pod.Spec.InitContainers, pod.Spec.Resources = nil, nil
		var claims []string
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Resources = corev1.ResourceRequirements{Requests: cpuOf("500m"), Limits: cpuOf("1")}
			c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
			claims = append(claims, c.Name+"=1000m")
		}
		pod.Annotations = map[string]string{overcommit.OriginalAnnotation: strings.Join(claims, ",")}
	case 1: // a copy of a pod that was lowered; maybe somebody has changed it since
		pod, _ = rules.Admit(pod, w.namespace())
		if random.IntN(2) == 0 {
			pod.Spec.Containers[0].Resources.Requests = cpuOf("70m")
			pod.Spec.Containers[0].Resources.Limits = nil
		}
	case 2: // forged
		pod.Annotations = map[string]string{overcommit.FactorAnnotation: "0.1", overcommit.OriginalAnnotation: pick(random, []string{
			"", "c0", "c0=1000m", "c0=500m,c1=200m", "c0=200m,c0=500m", "c0=99999999999m", "/=1000m", "c0=66m,/=4000m", "c0=1", "init-0=66m", "c0=666m,c1=666m,c2=666m,init-0=666m"})}
	}
	if random.IntN(40) == 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, corev1.MirrorPodAnnotationKey, "hash")
		pod.Spec.NodeName = "n"
	}
	return pod
}

var amounts = []string{"0", "1m", "10m", "11m", "19m", "33m", "50m", "61m", "0.1", "150m", "333m", "500m", "700m", "1", "1500m", "1.0005", "2"}

func randomOwn(random *rand.Rand, from []string, guaranteed bool) corev1.ResourceRequirements {
	own := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	amount := resource.MustParse(pick(random, from))
	memory := resource.MustParse("1Gi")
	if guaranteed {
		own.Limits[corev1.ResourceCPU], own.Limits[corev1.ResourceMemory] = amount, memory
		return own
	}
	if random.IntN(4) > 0 {
		own.Requests[corev1.ResourceCPU] = amount
	}
	switch limit := amount.DeepCopy(); random.IntN(4) {
	case 0:
		own.Limits[corev1.ResourceCPU] = limit
	case 1:
		limit.Add(resource.MustParse(pick(random, from)))
		own.Limits[corev1.ResourceCPU] = limit
	}
	if random.IntN(3) == 0 {
		own.Requests[corev1.ResourceMemory] = memory
	}
	if random.IntN(3) == 0 {
		own.Limits[corev1.ResourceMemory] = memory
	}
	return own
}

func randomOwner(random *rand.Rand, pod *corev1.Pod) {
	if random.IntN(2) == 0 {
		return
	}
	owner := pick(random, []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-6d4cf"}, {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "scaled-6d4cf"},
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "scaled"}, {APIVersion: "v1", Kind: "ReplicationController", Name: "old"}, {APIVersion: "batch/v1", Kind: "Job", Name: "job"},
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "each"}, {APIVersion: "postgres.example/v1", Kind: "StatefulSet", Name: "db"}, {APIVersion: "v1", Kind: "Node", Name: "n"}})
	owner.UID, owner.Controller = "4711", new(random.IntN(8) > 0)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "beside", UID: "4712"}, owner}
	if random.IntN(4) > 0 {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "pod-template-hash", "6d4cf")
	}
}

func text(objects ...any) string {
	out, err := json.Marshal(objects)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// A hook that comes later sets requests and adds a container: what it makes of a pod is lowered once, and the rest stays.
func TestOvercommitAfterAnotherHook(t *testing.T) {
	rules, c := overcommitting(t)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		var pod corev1.Pod
		err := json.NewDecoder(request.Body).Decode(&review)
		if err == nil {
			err = json.Unmarshal(review.Request.Object.Raw, &pod)
		}
		if err != nil {
			t.Error(err)
			return
		}
		recommended := corev1.Container{Name: "injected", Image: "i", Resources: corev1.ResourceRequirements{Requests: cpuOf("300m")}}
		patch, _ := json.Marshal([]map[string]any{
			{"op": "add", "path": "/spec/containers/0/resources", "value": recommended.Resources},
			{"op": "add", "path": "/spec/containers/-", "value": recommended},
		})
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: new(admissionv1.PatchTypeJSONPatch)}
		review.Request = nil
		json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(hook.Close)
	pair := allTwins[0]
	configuration := &registrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "overcommit-test"}, Webhooks: []registrationv1.MutatingWebhook{{
		Name: "hook.temper.dev", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(registrationv1.SideEffectClassNone),
		ClientConfig: registrationv1.WebhookClientConfig{URL: &hook.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})},
		Rules: []registrationv1.RuleWithOperations{{Operations: []registrationv1.OperationType{registrationv1.Create},
			Rule: registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{pair.with(), pair.without()}}}},
	}}}
	if err := c.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), configuration); err != nil {
			t.Error(err)
		}
	})
	pod := podOf("", "p", "")
	pod.Spec.Containers[0].Resources.Requests = cpuOf("2")
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "beside", Image: "i", Resources: corev1.ResourceRequirements{Requests: cpuOf("2")}})
	eventually(t, "the hook is called", func() bool {
		made, err := admitted(t, c, pod, pair.without())
		return err == nil && len(made.Spec.Containers) == 3
	})
	for _, request := range []string{"2", "600m", "300m", "1m"} {
		pod.Spec.Containers[1].Resources.Requests = cpuOf(request)
		without, err := admitted(t, c, pod, pair.without())
		if err != nil {
			t.Fatal(err)
		}
		got, err := admitted(t, c, pod, pair.with())
		if err != nil {
			t.Fatal(err)
		}
		want, outcome := rules.Admit(without, pair.namespace())
		if outcome.Left != "" || !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("beside a request of %s (%q): got -, want +\n%s", request, outcome.Left, diff.Diff(got, want))
		}
	}
}

// Once a pod is made, its annotations stay, whoever changes them, and its requests can be set by a resize.
func TestOvercommitAnnotationsStay(t *testing.T) {
	_, c := overcommitting(t)
	pod := podOf("oc-plain", "kept", "")
	pod.Spec.Containers[0].Resources.Requests = cpuOf("2")
	create(t, pod)
	const want = "c=2000m"
	for _, try := range []struct {
		what        string
		annotations map[string]string
	}{
		{"forged", map[string]string{overcommit.OriginalAnnotation: "c=4000m", overcommit.FactorAnnotation: "0.1"}},
		{"removed", map[string]string{}},
		{"none at all", nil},
		{"one more", map[string]string{overcommit.OriginalAnnotation: want, overcommit.FactorAnnotation: "0.5", "other": "one"}},
	} {
		changed := pod.DeepCopy()
		changed.ResourceVersion = ""
		changed.Annotations = try.annotations
		if err := c.Update(t.Context(), changed); err != nil {
			t.Errorf("%s: %v", try.what, err)
			continue
		}
		if changed.Annotations[overcommit.OriginalAnnotation] != want || changed.Annotations[overcommit.FactorAnnotation] != "0.5" || changed.Annotations["other"] != try.annotations["other"] {
			t.Errorf("%s: got %v", try.what, changed.Annotations)
		}
	}
	status := pod.DeepCopy()
	status.ResourceVersion, status.Annotations = "", nil
	if err := c.Status().Update(t.Context(), status); err != nil || status.Annotations[overcommit.OriginalAnnotation] != want {
		t.Errorf("with the status (%v): got %v", err, status.Annotations)
	}
	left := podOf("oc-plain", "left", "")
	create(t, left)
	metav1.SetMetaDataAnnotation(&left.ObjectMeta, overcommit.OriginalAnnotation, "c=1000m")
	if err := c.Update(t.Context(), left); err != nil || left.Annotations[overcommit.OriginalAnnotation] != "" {
		t.Errorf("on a pod that was left alone (%v): got %v", err, left.Annotations)
	}
	resized := pod.DeepCopy()
	resized.ResourceVersion = ""
	resized.Spec.Containers[0].Resources.Requests = cpuOf("1500m")
	if err := c.SubResource("resize").Update(t.Context(), resized); err != nil {
		t.Fatal(err)
	}
	if got := resized.Spec.Containers[0].Resources.Requests.Cpu().String(); got != "1500m" || resized.Annotations[overcommit.OriginalAnnotation] != want {
		t.Errorf("resized: requests %s, annotations %v", got, resized.Annotations)
	}
}

// What 'kubectl temper overcommit render' writes does it, as it stands, and 'report' says what it has done.
func TestOvercommitByCommand(t *testing.T) {
	const shop = "oc-shop"
	namespace(t, shop, nil)
	config := server.KubeConfig
	flags := []string{"--namespaces", shop, "--factor", "0.25", "--autoscaled", shop + "/StatefulSet/scaled"}
	rendered, said, status := kubectlTemper(t, config, append([]string{"overcommit", "render"}, flags...)...)
	if status != 0 || said != "" {
		t.Fatalf("render: status %d: %s", status, said)
	}
	missed := podOf(shop, "before", "")
	missed.Spec.Containers[0].Resources.Requests = cpuOf("1")
	create(t, missed)
	file := filepath.Join(t.TempDir(), "overcommit.yaml")
	if err := os.WriteFile(file, []byte(rendered), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := apply(file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		list, err := objects(file)
		for _, object := range list {
			err = errors.Join(err, cluster.Delete(context.Background(), object))
		}
		if err != nil {
			t.Error(err)
		}
	})
	eventually(t, "requests are lowered", func() bool {
		pod := podOf(shop, "try", "")
		pod.Spec.Containers[0].Resources.Requests = cpuOf("1")
		return cluster.Create(t.Context(), pod, client.DryRunAll) == nil && pod.Spec.Containers[0].Resources.Requests.Cpu().String() == "250m"
	})
	lowered, scaled := podOf(shop, "lowered", ""), podOf(shop, "scaled", "")
	scaled.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "scaled", UID: "4711", Controller: new(true)}}
	for _, pod := range []*corev1.Pod{lowered, scaled} {
		pod.Spec.Containers[0].Resources.Requests = cpuOf("4")
		create(t, pod)
	}
	text, said, status := kubectlTemper(t, config, append([]string{"overcommit", "report", "--json"}, flags...)...)
	var got overcommit.Report
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 0 {
		t.Fatalf("report: status %d, %v: %s%s", status, err, text, said)
	}
	want := overcommit.Report{AskedCPUs: 9, RequestedCPUs: 6, GivenCPUs: 3, Pods: []overcommit.Pod{
		{Namespace: shop, Name: "before", State: "missed", AskedCPUs: 1, RequestedCPUs: 1, Why: "it was created while the policy was not in force"},
		{Namespace: shop, Name: "lowered", State: "lowered", AskedCPUs: 4, RequestedCPUs: 1},
		{Namespace: shop, Name: "scaled", State: "left alone", AskedCPUs: 4, RequestedCPUs: 4, Why: "StatefulSet scaled is scaled by CPU utilisation, which is a share of its requests, or was named as exempt"},
	}}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("report: got -, want +\n%s", diff.Diff(got, want))
	}
	for _, wrong := range [][]string{{"render"}, {"render", "--namespaces", "kube-system"}, {"report", "--namespaces", shop, "--factor", "0"},
		{"report", "--namespaces", shop, "--tiers", "critical"}, {"render", "--namespaces", shop, "--floor", "much"}, {"render", "--namespaces", shop, "--autoscaled", "web"}} {
		if _, said, status := kubectlTemper(t, config, append([]string{"overcommit"}, wrong...)...); status != exit.Usage {
			t.Errorf("%v: status %d, want %d: %s", wrong, status, exit.Usage, said)
		}
	}
	if _, said, status := kubectlTemper(t, config, "overcommit", "report", "--namespaces", "oc-none"); status != exit.Failed || !strings.Contains(said, `no namespace "oc-none"`) {
		t.Errorf("report on a namespace that is not there: status %d: %s", status, said)
	}
}

// What takes more than its budget is not evaluated: the largest pods that are looked at must be within it, with the largest
// LimitRange beside them. Larger ones are left alone.
func TestOvercommitOfTheLargestPods(t *testing.T) {
	rules, c := overcommitting(t)
	for _, w := range []twins{allTwins[0], allTwins[4]} {
		for _, containers := range []int{64, 65, 150} {
			pod := podOf("", "large", "")
			pod.Spec.Containers = nil
			var claims []string
			for i := range containers {
				name := fmt.Sprintf("%063d", i)
				container := corev1.Container{Name: name, Image: "i", Resources: corev1.ResourceRequirements{Requests: cpuOf("333m"), Limits: cpuOf("2")}}
				if i%2 == 0 {
					pod.Spec.Containers = append(pod.Spec.Containers, container)
				} else {
					container.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
					pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
				}
				claims = append(claims, name+"=666m")
			}
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: cpuOf("200")}
			// As long as it can truly be, and as long as the API server takes it.
			for _, annotation := range []string{"", strings.Join(claims, ","), strings.Repeat("a=1m,", 50_000) + "a=1m"} {
				pod.Annotations = map[string]string{overcommit.OriginalAnnotation: annotation}
				said := checkTwins(t, c, rules, w, pod)
				if large := containers > 64; said != map[bool]string{false: "lowered", true: "it has"}[large] {
					t.Errorf("%s, %d containers, annotation of %d bytes: %s", w.with(), containers, len(annotation), said)
				}
			}
		}
	}
}
