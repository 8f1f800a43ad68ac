//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/overcommit"
)

// controlled is a cluster with the controller's roles, where capacity is lowered in the namespace of the test.
type controlled struct {
	t         *testing.T
	cluster   client.Client // Kubernetes' own kinds
	namespace string
	nodes     []*corev1.Node
	reported  map[string]int // how often
}

// newControlled makes the roles, the namespace, and so many nodes of 4 CPUs.
func newControlled(t *testing.T, count int) *controlled {
	t.Helper()
	c := &controlled{t: t, cluster: kubernetesClient(t), namespace: "ctl-" + strings.ToLower(strings.TrimPrefix(t.Name(), "TestController")), reported: map[string]int{}}
	for _, object := range controllerObjects(t) {
		object := object
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cluster.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
	}
	namespace(t, c.namespace, nil)
	emptied(t, c.cluster, c.namespace)
	for i := range count {
		c.nodes = append(c.nodes, nodeOf(t, fmt.Sprintf("%s-%d", c.namespace, i), "4"))
		report := &v1alpha1.TemperNode{ObjectMeta: metav1.ObjectMeta{Name: c.nodes[i].Name}}
		create(t, report)
	}
	noPolicies(t, c.cluster)
	t.Cleanup(func() {
		if err := cluster.DeleteAllOf(context.Background(), &v1alpha1.CapacityPolicy{}); err != nil {
			t.Error(err)
		}
		if err := c.cluster.DeleteAllOf(context.Background(), &coordinationv1.Lease{}, client.InNamespace("temper-system")); err != nil {
			t.Error(err)
		}
	})
	return c
}

// report has the nodes' agents say how their tiers do, half a minute after they said so last: how many of the CPUs those above
// background use, and what share of standard's waits is long.
func (c *controlled) report(enforced bool, cpus, longWaits float64) {
	c.t.Helper()
	for _, node := range c.nodes {
		c.reportOf(node.Name, enforced, cpus, longWaits)
	}
}

func (c *controlled) reportOf(node string, enforced bool, cpus, longWaits float64) {
	c.t.Helper()
	const apart = 30 * time.Second
	var report v1alpha1.TemperNode
	if err := cluster.Get(c.t.Context(), client.ObjectKey{Name: node}, &report); err != nil {
		c.t.Fatal(err)
	}
	used, waits, long, at := 0.0, int64(0), int64(0), time.Now().Add(-apart)
	for _, was := range report.Status.Tiers {
		if was.Tier == "standard" {
			if _, err := fmt.Sscan(was.CPUSeconds, &used); err != nil {
				c.t.Fatal(err)
			}
			waits, long, at = was.Waits, was.LongWaits, report.Status.Reported.Add(apart)
		}
	}
	report.Status.Reported = metav1.NewTime(at)
	report.Status.Tiers = []v1alpha1.TierStatus{
		{Tier: "standard", CPUSeconds: fmt.Sprintf("%.3f", used+cpus*apart.Seconds()), Waits: waits + 1000, LongWaits: long + int64(longWaits*1000)},
		{Tier: "background", CPUSeconds: fmt.Sprintf("%.3f", 4*apart.Seconds())},
	}
	condition := metav1.Condition{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionFalse, Reason: "Ejected", Message: "of the test"}
	if enforced {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Attached"
	}
	meta.SetStatusCondition(&report.Status.Conditions, condition)
	if err := cluster.Status().Update(c.t.Context(), &report); err != nil {
		c.t.Fatal(err)
	}
	c.reported[node]++
}

// policy makes the CapacityPolicy, which waits for nothing where the nodes are calm.
func (c *controlled) policy(change func(*v1alpha1.CapacityPolicySpec)) {
	c.t.Helper()
	p := &v1alpha1.CapacityPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.CapacityPolicyName}, Spec: v1alpha1.CapacityPolicySpec{
		Namespaces: []string{c.namespace}, Floor: resource.MustParse("10m"), Guard: v1alpha1.GuardSpec{RecoverAfterSeconds: new(int32(0))},
		NodeSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pool", Operator: metav1.LabelSelectorOpDoesNotExist}}},
	}}
	if change != nil {
		change(&p.Spec)
	}
	if err := cluster.Create(c.t.Context(), p); err != nil {
		c.t.Fatal(err)
	}
}

// controller starts one as the service account that the chart gives it.
func (c *controlled) controller(args ...string) *exec.Cmd {
	c.t.Helper()
	config, err := clientcmd.Load(server.KubeConfig)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:temper-system:temper-controller"
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		c.t.Fatal(err)
	}
	dir := c.t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		c.t.Fatal(err)
	}
	args = append([]string{"--namespace", "temper-system", "--kubeconfig", file, "--every", "100ms"}, args...)
	cmd := exec.Command(root+"/bin/temper-controller", args...)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		text, _ := os.ReadFile(said.Name())
		if c.t.Failed() {
			c.t.Logf("the controller said:\n%s", text)
		}
		if strings.Contains(string(text), "forbidden") {
			c.t.Errorf("it was refused something:\n%s", text)
		}
	})
	return cmd
}

// asks is what a pod that asks for 2 CPUs, tried out, would request; and whether it would ask for a node that is enforced.
func (c *controlled) asks(class string) string {
	c.t.Helper()
	pod := requesting(c.namespace, "p", "", "2")
	pod.Spec.PriorityClassName = class
	if err := c.cluster.Create(c.t.Context(), pod, client.DryRunAll); err != nil {
		return err.Error()
	}
	own := pod.Spec.Containers[0].Resources
	if _, bound := own.Limits[v1alpha1.OvercommitResource]; bound {
		return own.Requests.Cpu().String() + " on enforced nodes"
	}
	return own.Requests.Cpu().String()
}

const (
	half = "1 on enforced nodes"
	full = "2"
)

func (c *controlled) awaitAsks(want string) {
	c.t.Helper()
	got := ""
	c.t.Cleanup(func() {
		if c.t.Failed() && got != want {
			c.t.Logf("a pod requests %q, want %q", got, want)
		}
	})
	eventually(c.t, "a pod requests "+want, func() bool { got = c.asks(""); return got == want })
}

// measured has the nodes report until the policy says of condition Guarded what is wanted.
func (c *controlled) measured(status metav1.ConditionStatus, reason string, cpus, longWaits float64) {
	c.t.Helper()
	c.report(true, cpus, longWaits)
	eventually(c.t, fmt.Sprintf("Guarded is %s, for %s", status, reason), func() bool {
		is := c.condition(v1alpha1.ConditionGuarded)
		return is != nil && is.Status == status && is.Reason == reason
	})
}

func (c *controlled) condition(name string) *metav1.Condition {
	var p v1alpha1.CapacityPolicy
	if cluster.Get(c.t.Context(), client.ObjectKey{Name: v1alpha1.CapacityPolicyName}, &p) != nil {
		return nil
	}
	return meta.FindStatusCondition(p.Status.Conditions, name)
}

// lowering starts a controller and awaits that pods are lowered.
func (c *controlled) lowering(change func(*v1alpha1.CapacityPolicySpec), args ...string) *exec.Cmd {
	c.t.Helper()
	c.report(true, 1, 0)
	c.policy(change)
	cmd := c.controller(args...)
	eventually(c.t, "the nodes are to be measured", func() bool {
		is := c.condition(v1alpha1.ConditionGuarded)
		return is != nil && is.Reason == "NotMeasured"
	})
	if got := c.asks(""); got != full {
		c.t.Errorf("before the nodes are measured a pod requests %s", got)
	}
	c.measured(metav1.ConditionFalse, "Calm", 1, 0)
	c.awaitAsks(half)
	return cmd
}

// controllerObjects are those of the chart that the controller needs.
func controllerObjects(t *testing.T) []client.Object {
	t.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv("TEMPER_KUBERNETES"), "helm"), "template", "temper", chartFolder, "--namespace", "temper-system",
		"--set", "controller.enabled=true", "--show-only", "templates/controller-rbac.yaml")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm template: %v", err)
	}
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, out, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := objects(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []client.Object
	for _, object := range list {
		all = append(all, object)
	}
	return all
}

// The policy is made, follows each of what it rests on, and goes.
func TestControllerFollows(t *testing.T) {
	c := newControlled(t, 1)
	inForce(t)
	create(t, &v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: "follows"}, Spec: v1alpha1.TierPolicySpec{Precedence: -2000,
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"none": "such"}}}})
	class(t, "ctl-follows", 12)
	patchNamespace(t, c.namespace, highestTier, "critical")
	c.lowering(nil)
	if ready := c.condition(v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || ready.Message != "new pods are left with 50 per cent of their CPU requests" {
		t.Errorf("%+v", ready)
	}

	var tiers v1alpha1.TierPolicy
	key := client.ObjectKey{Name: "follows"}
	if err := cluster.Get(t.Context(), key, &tiers); err != nil {
		t.Fatal(err)
	}
	if got := c.asks("ctl-follows"); got != half {
		t.Errorf("a pod of a class that is not critical requests %s", got)
	}
	tiers.Spec.Rules = []v1alpha1.TierRule{{Name: "r", PriorityClassNames: []string{"ctl-follows"}, Tier: "critical"}}
	if err := cluster.Update(t.Context(), &tiers); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a TierPolicy's new rule holds", func() bool { return c.asks("ctl-follows") == full })

	owned := func() string {
		pod := requesting(c.namespace, "p", "", "2")
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "scaled", UID: "1", Controller: new(true)}}
		if err := c.cluster.Create(t.Context(), pod, client.DryRunAll); err != nil {
			return err.Error()
		}
		return pod.Spec.Containers[0].Resources.Requests.Cpu().String()
	}
	if got := owned(); got != "1" {
		t.Errorf("a StatefulSet's pod requests %s", got)
	}
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "h"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		MaxReplicas: 3, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "scaled"}}}
	if err := c.cluster.Create(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an autoscaled workload is left alone", func() bool { return owned() == "2" })
	hpa.Spec.ScaleTargetRef.Name = "other"
	if err := c.cluster.Update(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is lowered once the autoscaler names another", func() bool { return owned() == "1" })
	if err := c.cluster.Delete(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}

	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "l"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Min: cpuOf("1500m")}}}}
	if err := c.cluster.Create(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	c.awaitAsks(full)
	if err := c.cluster.Delete(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	c.awaitAsks(half)

	c.change(func(s *v1alpha1.CapacityPolicySpec) { s.FactorPercent = 25 })
	c.awaitAsks("500m on enforced nodes")
	// Whoever deletes what is generated has it back.
	deletePolicies(t, c.cluster)
	eventually(t, "the admission policies are made again", func() bool { p := policiesOf(t, c.cluster); return p.Keep != nil && p.Lower != nil })
	c.awaitAsks("500m on enforced nodes")

	refusedCommand(t, 1, "CapacityPolicy default keeps", "apply", "--yes", "--namespaces", c.namespace)
	refusedCommand(t, 1, "CapacityPolicy default keeps", "remove")
	// The controller, which wrote while others deleted, may have failed once, and closed what it had made until its next look.
	eventually(t, "the report says that the guard is calm", func() bool {
		out, _, _ := kubectlTemper(t, server.KubeConfig, "overcommit", "report")
		return strings.Contains(out, "Guard: Calm: 1 of 1 nodes are fit. New pods are left with 25 per cent of their CPU requests.")
	})
	if err := cluster.DeleteAllOf(t.Context(), &v1alpha1.CapacityPolicy{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is left", func() bool { p := policiesOf(t, c.cluster); return p.Keep == nil && p.Lower == nil })
	c.awaitAsks(full)
}

func (c *controlled) change(what func(*v1alpha1.CapacityPolicySpec)) {
	c.t.Helper()
	eventually(c.t, "the CapacityPolicy is changed", func() bool {
		var p v1alpha1.CapacityPolicy
		if err := cluster.Get(c.t.Context(), client.ObjectKey{Name: v1alpha1.CapacityPolicyName}, &p); err != nil {
			c.t.Fatal(err)
		}
		what(&p.Spec)
		return cluster.Update(c.t.Context(), &p) == nil // nobody else wrote it meanwhile
	})
}

func patchNamespace(t *testing.T, name, label, value string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, label, value)
	if err := cluster.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// The guard pauses overcommit for each of its reasons, with an event, and lowers again when the nodes are calm.
func TestControllerGuards(t *testing.T) {
	c := newControlled(t, 3)
	c.lowering(nil)
	for _, fault := range []struct {
		reason string
		cause  func()
	}{
		{"UseTooHigh", func() { c.report(true, 3.6, 0) }},
		{"WaitsTooLong", func() { c.report(true, 1, 0.05) }},
		{"NotEnforced", func() { c.reportOf(c.nodes[1].Name, false, 1, 0) }},
	} {
		fault.cause()
		eventually(t, "the guard pauses for "+fault.reason, func() bool {
			is := c.condition(v1alpha1.ConditionGuarded)
			return is.Status == metav1.ConditionTrue && is.Reason == fault.reason
		})
		c.awaitAsks(full)
		eventually(t, "an event says so", func() bool { return c.event("GuardedTrue", fault.reason) })
		if fault.reason == "UseTooHigh" { // between the thresholds nothing turns
			c.measured(metav1.ConditionTrue, "Recovering", 3.2, 0)
			if got := c.asks(""); got != full {
				t.Errorf("while nodes are not calm yet a pod requests %s", got)
			}
		}
		if fault.reason == "NotEnforced" { // a load is of two reports
			c.measured(metav1.ConditionTrue, "NotMeasured", 1, 0)
		}
		c.measured(metav1.ConditionFalse, "Calm", 1, 0)
		c.awaitAsks(half)
	}
	if !c.event("GuardedFalse", "Calm") {
		t.Error("no event says that the nodes are calm")
	}
}

// event is whether there is one of the CapacityPolicy.
func (c *controlled) event(reason, note string) bool {
	c.t.Helper()
	var list eventsv1.EventList
	if err := c.cluster.List(c.t.Context(), &list); err != nil {
		c.t.Fatal(err)
	}
	return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind == "CapacityPolicy" && e.Reason == reason && strings.HasPrefix(e.Note, note+": ")
	})
}

// Nodes offer lowered pods a place while they are enforced, selected, and heard of; and the controller may change no more of them.
func TestControllerOffersNodes(t *testing.T) {
	c := newControlled(t, 2)
	offers := func(node int) bool {
		var is corev1.Node
		if err := c.cluster.Get(t.Context(), client.ObjectKeyFromObject(c.nodes[node]), &is); err != nil {
			t.Fatal(err)
		}
		_, capacity := is.Status.Capacity[v1alpha1.OvercommitResource]
		_, allocatable := is.Status.Allocatable[v1alpha1.OvercommitResource]
		if is.Status.Capacity.Cpu().Value() != 4 {
			t.Errorf("node %d has %v", node, is.Status.Capacity)
		}
		return capacity && allocatable
	}
	c.lowering(func(s *v1alpha1.CapacityPolicySpec) { s.Guard.MinFitPercent = 50 })
	eventually(t, "both nodes offer it", func() bool { return offers(0) && offers(1) })
	c.reportOf(c.nodes[1].Name, false, 1, 0)
	eventually(t, "one that is not enforced does not", func() bool { return offers(0) && !offers(1) })
	c.reportOf(c.nodes[1].Name, true, 1, 0)
	eventually(t, "it does again", func() bool { return offers(1) })
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"pool":"other"}}}`))
	if err := c.cluster.Patch(t.Context(), c.nodes[1].DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one that is not selected does not", func() bool { return offers(0) && !offers(1) })
	if err := cluster.DeleteAllOf(t.Context(), &v1alpha1.CapacityPolicy{}); err != nil {
		t.Fatal(err)
	}
	c.awaitAsks(full)
	if !offers(0) {
		t.Error("pods that were lowered before have no node left")
	}
	c.report(false, 1, 0)
	eventually(t, "no node offers it", func() bool { return !offers(0) && !offers(1) })

	// As the controller: what it may not.
	config := rest.CopyConfig(server.Config)
	config.Impersonate.UserName = "system:serviceaccount:temper-system:temper-controller"
	as, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"status":{"capacity":{"cpu":"8"}}}`, `{"status":{"allocatable":{"memory":null,"cpu":null}}}`,
		`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, `{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}`} {
		err := as.Status().Patch(t.Context(), c.nodes[0].DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))
		if err == nil || !strings.Contains(err.Error(), "may change no more of a node") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// A leader that is killed is followed by another, which goes on as it was.
func TestControllerIsFollowed(t *testing.T) {
	c := newControlled(t, 1)
	first := c.lowering(nil)
	holder := func() string {
		var lease coordinationv1.Lease
		if err := c.cluster.Get(t.Context(), client.ObjectKey{Namespace: "temper-system", Name: "temper-controller"}, &lease); err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	was := holder()
	c.controller()
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	// Deleted half-way: while nobody leads.
	if err := cluster.DeleteAllOf(t.Context(), &v1alpha1.CapacityPolicy{}); err != nil {
		t.Fatal(err)
	}
	if got := c.asks(""); got != half {
		t.Errorf("without a controller a pod requests %s, and not what the policy says that it had left", got)
	}
	eventually(t, "another leads", func() bool { is := holder(); return is != "" && is != was })
	eventually(t, "it ends what the CapacityPolicy asked for", func() bool { p := policiesOf(t, c.cluster); return p.Keep == nil && p.Lower == nil })
	c.awaitAsks(full)
}

// In whatever order the controller, the CapacityPolicy, what was generated and the roles are deleted: no pod is refused, and
// lowered pods keep what they can be given back.
func TestControllerDeletesRefuseNoPod(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	c := newControlled(t, 1)
	cmd := c.lowering(nil)
	create(t, requesting(c.namespace, "lowered", "", "2"))
	steps := map[string]func(){
		"controller": func() { cmd.Process.Kill(); cmd.Wait() },
		"CapacityPolicy": func() {
			if err := cluster.DeleteAllOf(t.Context(), &v1alpha1.CapacityPolicy{}); err != nil {
				t.Error(err)
			}
		},
		"TemperNodes": func() { c.report(false, 0, 0) },
		"bindings": func() {
			c.deleteGenerated(random, func(name string) client.Object {
				return &registrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
			})
		},
		"policies": func() {
			c.deleteGenerated(random, func(name string) client.Object {
				return &registrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
			})
		},
	}
	names := []string{"CapacityPolicy", "TemperNodes", "bindings", "controller", "policies"}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i, name := range names {
		steps[name]()
		for range 20 {
			if got := c.asks(""); got != half && got != full {
				t.Fatalf("seed %d: after %v: %s", seed, names[:i+1], got)
			}
		}
	}
	pod := podsOf(t, c.cluster, c.namespace)["lowered"]
	if pod.Annotations[overcommit.OriginalAnnotation] != "c=2000m" {
		t.Errorf("seed %d: after %v the pod's original is %q", seed, names, pod.Annotations[overcommit.OriginalAnnotation])
	}
}

// deleteGenerated deletes some of what the controller has made.
func (c *controlled) deleteGenerated(random *rand.Rand, of func(name string) client.Object) {
	for _, name := range []string{overcommit.LowerName, overcommit.KeepName, overcommit.LowerName + "-limitranges"} {
		if random.IntN(2) == 0 {
			if err := c.cluster.Delete(c.t.Context(), of(name)); client.IgnoreNotFound(err) != nil {
				c.t.Error(err)
			}
		}
	}
}
