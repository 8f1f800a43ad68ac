//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/overcommit"
	"temper.dev/temper/internal/capacity/overcommit/incluster"
)

var changedPods = flag.Int("overcommit-changed-pods", 240, "how many random pods are repaired and restored")

// overcommitCommand runs one with the administrator's rights, and expects it to succeed.
func overcommitCommand(t *testing.T, args ...string) string {
	t.Helper()
	out, said, status := kubectlTemper(t, server.KubeConfig, append([]string{"overcommit"}, args...)...)
	if status != 0 {
		t.Fatalf("%v: status %d: %s%s", args, status, out, said)
	}
	return out
}

// refusedCommand runs one that is to fail, and say so.
func refusedCommand(t *testing.T, wantStatus int, want string, args ...string) {
	t.Helper()
	out, said, status := kubectlTemper(t, server.KubeConfig, append([]string{"overcommit"}, args...)...)
	if status != wantStatus || !strings.Contains(said, want) {
		t.Errorf("%v: status %d, want %d with %q: %s%s", args, status, wantStatus, want, out, said)
	}
}

// noPolicies deletes them at the end, where a test has left some.
func noPolicies(t *testing.T, c client.Client) {
	t.Helper()
	t.Cleanup(func() { deletePolicies(t, c) })
}

func deletePolicies(t *testing.T, c client.Client) {
	t.Helper()
	for _, object := range []client.Object{&registrationv1.MutatingAdmissionPolicy{}, &registrationv1.MutatingAdmissionPolicyBinding{}} {
		if err := c.DeleteAllOf(context.Background(), object); err != nil {
			t.Error(err)
		}
	}
}

func policiesOf(t *testing.T, c client.Client) incluster.Policies {
	t.Helper()
	p, err := incluster.Read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func kubernetesClient(t *testing.T) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(rest.CopyConfig(server.Config), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// podsOf are all pods of a namespace, by name.
func podsOf(t *testing.T, c client.Reader, namespace string) map[string]*corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]*corev1.Pod{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found
}

// emptied deletes a namespace's pods at the end.
func emptied(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.DeleteAllOf(context.Background(), &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
}

// asked is what a pod says of its requests: its spec, and Temper's annotations.
func asked(pod *corev1.Pod) string {
	return text(pod.Spec, pod.Annotations[overcommit.OriginalAnnotation], pod.Annotations[overcommit.FactorAnnotation])
}

// killed starts a command, and kills it once something is so.
func killed(t *testing.T, when func() bool, args ...string) {
	t.Helper()
	cmd := startCommand(t, args...)
	eventually(t, "it has begun", when)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if !strings.Contains(cmd.ProcessState.String(), "killed") {
		t.Errorf("%v was through before it was killed: %v", args, cmd.ProcessState)
	}
}

// twoAtOnce runs a command twice at a time.
func twoAtOnce(t *testing.T, args ...string) {
	t.Helper()
	for _, cmd := range []*exec.Cmd{startCommand(t, args...), startCommand(t, args...)} {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v: %s", args, err, cmd.Stderr)
		}
	}
}

func startCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), root+"/bin/kubectl-temper", append([]string{"overcommit"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+file)
	cmd.Stderr = &strings.Builder{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// Random pods there and back: those that the policy missed are listed exactly, and repaired to what admission makes of them;
// all are given back what their twins have. Each command is killed half-way, and then runs twice at a time.
func TestOvercommitThereAndBack(t *testing.T) {
	c := kubernetesClient(t)
	noPolicies(t, c)
	inForce(t)
	pairs := []twins{{name: "round"}, {name: "round-default", limits: []corev1.LimitRangeSpec{byDefault(corev1.LimitRangeItem{})}},
		{name: "round-min", limits: []corev1.LimitRangeSpec{byDefault(corev1.LimitRangeItem{Min: cpuOf("30m")})}}}
	makeTwins(t, c, pairs)
	for name, value := range map[string]int32{"oc-high": 700, "oc-low": -700} {
		class(t, name, value)
	}
	var names []string
	for _, w := range pairs {
		names = append(names, w.with())
		emptied(t, c, w.with())
		emptied(t, c, w.without())
	}
	seed := *overcommitSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	made := 0
	some := func(change func(*corev1.Pod)) {
		for range *changedPods / 2 {
			w := pick(random, pairs)
			pod := randomRequests(random, overcommitRules(t), w)
			made++
			pod.Name = fmt.Sprint("p-", made)
			delete(pod.Annotations, overcommit.OriginalAnnotation)
			delete(pod.Annotations, overcommit.FactorAnnotation)
			change(pod)
			twin := pod.DeepCopy()
			pod.Namespace, twin.Namespace = w.with(), w.without()
			if c.Create(t.Context(), twin) != nil {
				continue // refused, with overcommit or without
			}
			if err := c.Create(t.Context(), pod); err != nil {
				t.Fatalf("pod %s: %v", pod.Name, err)
			}
		}
	}
	some(func(pod *corev1.Pod) {
		if random.IntN(8) == 0 {
			pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
		}
	})
	before := map[string]bool{}
	for _, w := range pairs {
		for name := range podsOf(t, c, w.with()) {
			before[name] = true
		}
	}
	overcommitCommand(t, "apply", "--yes", "--namespaces", strings.Join(names, ","))
	some(func(*corev1.Pod) {})

	// What admission makes of each twin is what is to become of the pod.
	want, missed, alone := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, w := range pairs {
		for name, twin := range podsOf(t, c, w.without()) {
			anew := twin.DeepCopy()
			anew.ObjectMeta = metav1.ObjectMeta{Namespace: w.with(), Name: "try", Labels: twin.Labels, Annotations: twin.Annotations, OwnerReferences: twin.OwnerReferences}
			if err := c.Create(t.Context(), anew, client.DryRunAll); err != nil {
				t.Fatalf("seed %d: pod %s: %v", seed, name, err)
			}
			want[name] = asked(anew)
			if anew.Annotations[overcommit.OriginalAnnotation] == "" || !before[name] {
				continue
			}
			missed[name] = true
			if restarts := len(twin.Spec.Containers[0].ResizePolicy) > 0 && twin.Spec.Containers[0].ResizePolicy[0].RestartPolicy == corev1.RestartContainer; restarts &&
				anew.Spec.Containers[0].Resources.Requests.Cpu().Cmp(*twin.Spec.Containers[0].Resources.Requests.Cpu()) != 0 {
				alone[name], want[name] = true, asked(twin)
			}
		}
	}
	if len(missed)-len(alone) < *changedPods/12 || len(alone) == 0 {
		t.Fatalf("seed %d: of %d pods %d are missed, %d of them to be left alone", seed, len(want), len(missed), len(alone))
	}
	checkMissed := func(when string, want map[string]bool) {
		t.Helper()
		var report overcommit.Report
		if err := json.Unmarshal([]byte(overcommitCommand(t, "report", "--json")), &report); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, pod := range report.Pods {
			if pod.State == "missed" {
				got[pod.Name] = true
			}
		}
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("seed %d: missed %s: got -, want +\n%s", seed, when, diff.Diff(got, want))
		}
	}
	checkMissed("before the repair", missed)
	noted := func() (n int) {
		for _, w := range pairs {
			for name, pod := range podsOf(t, c, w.with()) {
				if before[name] && pod.Annotations[overcommit.FactorAnnotation] != "" {
					n++
				}
			}
		}
		return n
	}
	if dry := overcommitCommand(t, "repair", "--dry-run", "client"); noted() != 0 || strings.Count(dry, "to do") != len(missed)-len(alone)+1 {
		t.Errorf("seed %d: a dry run has lowered %d pods, and says\n%s", seed, noted(), dry)
	}
	killed(t, func() bool { return noted() > 0 }, "repair")
	twoAtOnce(t, "repair")
	checkMissed("after the repair", alone)
	for _, w := range pairs {
		for name, pod := range podsOf(t, c, w.with()) {
			if got := asked(pod); got != want[name] {
				t.Fatalf("seed %d: %s repaired: got\n%s\nwant\n%s", seed, name, got, want[name])
			}
		}
	}

	overcommitCommand(t, "remove")
	all := noted()
	killed(t, func() bool { return noted() < all }, "restore")
	twoAtOnce(t, "restore")
	for _, w := range pairs {
		twinsOf := podsOf(t, c, w.without())
		for name, pod := range podsOf(t, c, w.with()) {
			if got, want := text(pod.Spec, len(pod.Annotations)), text(twinsOf[name].Spec, len(twinsOf[name].Annotations)); got != want || asked(pod) != asked(twinsOf[name]) {
				t.Fatalf("seed %d: %s restored: got\n%s\nwant\n%s", seed, name, got, want)
			}
		}
	}
	if p := policiesOf(t, c); p.Lower != nil || p.Keep != nil {
		t.Error("the policies are still there, and keep nothing")
	}
}

// nodeOf makes a node with so many CPUs.
func nodeOf(t *testing.T, name, cpus string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	create(t, node)
	allocatable(t, node, cpus)
	return node
}

func allocatable(t *testing.T, node *corev1.Node, cpus string) {
	t.Helper()
	node.Status.Allocatable, node.Status.Capacity = cpuOf(cpus), cpuOf(cpus)
	if err := cluster.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

func requesting(namespace, name, node, cpu string) *corev1.Pod {
	pod := podOf(namespace, name, "")
	pod.Spec.NodeName = node
	pod.Spec.Containers[0].Resources.Requests = cpuOf(cpu)
	return pod
}

// kubelets answer resizes as their nodes' pods are told to, until the test ends. It returns what was requested at most on each node.
func kubelets(t *testing.T, c client.WithWatch, answers map[string]corev1.PodCondition, silent string) func() map[string]int64 {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	watch, err := c.Watch(ctx, &corev1.PodList{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	requested, most := map[string]map[string]int64{}, map[string]int64{}
	var group sync.WaitGroup
	group.Go(func() {
		for event := range watch.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Spec.NodeName == "" || !strings.HasPrefix(pod.Namespace, "oc-nodes") || event.Type == "DELETED" {
				continue
			}
			mu.Lock()
			if requested[pod.Spec.NodeName] == nil {
				requested[pod.Spec.NodeName] = map[string]int64{}
			}
			requested[pod.Spec.NodeName][pod.Name] = pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			sum := int64(0)
			for _, of := range requested[pod.Spec.NodeName] {
				sum += of
			}
			most[pod.Spec.NodeName] = max(most[pod.Spec.NodeName], sum)
			mu.Unlock()
			if pod.Name == silent || pod.Status.ObservedGeneration == pod.Generation {
				continue
			}
			pod.Status.ObservedGeneration = pod.Generation
			if condition, ok := answers[pod.Name]; ok && pod.Generation > 1 {
				pod.Status.Conditions = append(pod.Status.Conditions, condition)
			}
			if err := c.Status().Update(ctx, pod); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(func() { stop(); watch.Stop(); group.Wait() })
	return func() map[string]int64 {
		mu.Lock()
		defer mu.Unlock()
		return most
	}
}

// A packed cluster: the plan names what is missing and touches nothing; what fits is restored without a node being filled
// above what it can allocate; what kubelets put off is told.
func TestOvercommitOnAPackedCluster(t *testing.T) {
	c := kubernetesClient(t)
	noPolicies(t, c)
	const shop = "oc-nodes"
	namespace(t, shop, nil)
	namespace(t, shop+"-beside", nil)
	emptied(t, c, shop)
	a := nodeOf(t, "oc-a", "3")
	nodeOf(t, "oc-b", "2500m")
	create(t, requesting(shop+"-beside", "foreign", "oc-a", "500m"))
	deferred := func(reason, message string) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, Message: message}
	}
	most := kubelets(t, c, map[string]corev1.PodCondition{"z": deferred(corev1.PodReasonInfeasible, "never"), "u": deferred(corev1.PodReasonDeferred, "not now")}, "y")

	refusedCommand(t, exit.Usage, "'kubectl temper overcommit remove' ends it", "apply")
	refusedCommand(t, exit.Usage, "there is no terminal to ask on; --yes", "apply", "--namespaces", shop)
	if out := overcommitCommand(t, "apply", "--namespaces", shop, "--dry-run", "server"); !strings.Contains(out, "namespace oc-nodes: tiers are not enforced on 2 of its 2 nodes: oc-a, oc-b\n") ||
		!strings.Contains(out, "MutatingAdmissionPolicy temper-overcommit: would be created\n") || policiesOf(t, c).Lower != nil {
		t.Errorf("a dry run has written a policy, or says\n%s", out)
	}
	overcommitCommand(t, "apply", "--namespaces", shop, "--yes")
	if out := overcommitCommand(t, "apply", "--namespaces", shop, "--yes"); strings.Count(out, ": unchanged\n") != 5 {
		t.Errorf("applied again:\n%s", out)
	}
	restarts := requesting(shop, "restarts", "oc-b", "1")
	restarts.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	for _, pod := range []*corev1.Pod{requesting(shop, "x", "oc-a", "2"), requesting(shop, "y", "oc-a", "1"), requesting(shop, "z", "oc-a", "400m"),
		requesting(shop, "u", "oc-b", "1"), requesting(shop, "v", "oc-b", "1"), restarts} {
		if err := c.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	refusedCommand(t, exit.Failed, "new pods would still be lowered", "restore")
	overcommitCommand(t, "remove")
	refusedCommand(t, exit.Failed, "no overcommit policy is in force", "repair")

	state := func() string {
		var versions []string
		for name, pod := range podsOf(t, c, shop) {
			versions = append(versions, name+" "+text(pod.Spec, pod.Annotations))
		}
		slices.Sort(versions)
		return strings.Join(versions, "\n")
	}
	untouched := state()
	const plan = `NODE  ALLOCATABLE CPUS  REQUESTED  AFTER  MISSING  PODS  WOULD NOT FIT
oc-a  3                 2.2        3.9    0.9      3     1
oc-b  2.5               1.5        2.5    0        2     0
would not fit on oc-a: oc-nodes/x
left alone: oc-nodes/restarts: a resize would restart container c, as its resizePolicy asks for
5 pods to be restored; 0.9 CPUs are missing.
`
	if got := overcommitCommand(t, "restore", "--plan"); got != plan {
		t.Errorf("plan: got\n%s\nwant\n%s", got, plan)
	}
	refusedCommand(t, exit.Failed, "0.9 CPUs are missing; nothing was changed", "restore")
	if now := state(); now != untouched {
		t.Errorf("a plan has changed pods: got\n%s\nwant\n%s", now, untouched)
	}

	out, said, status := kubectlTemper(t, server.KubeConfig, "overcommit", "restore", "--what-fits", "--timeout", "2s", "--json")
	var got struct{ Pods incluster.Outcomes }
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != exit.Failed || !strings.Contains(said, "they keep the originals of 2 pods") {
		t.Fatalf("what fits: status %d, %v: %s%s", status, err, out, said)
	}
	want := incluster.Outcomes{
		{Namespace: shop, Name: "restarts", Node: "oc-b", State: "left alone", Why: "a resize would restart container c, as its resizePolicy asks for"},
		{Namespace: shop, Name: "u", Node: "oc-b", State: "deferred", Why: "not now"},
		{Namespace: shop, Name: "v", Node: "oc-b", State: "restored"},
		{Namespace: shop, Name: "x", Node: "oc-a", State: "no room", Why: "its node has no room for what it asked for"},
		{Namespace: shop, Name: "y", Node: "oc-a", State: "unanswered", Why: "its kubelet has not looked at the resize yet"},
		{Namespace: shop, Name: "z", Node: "oc-a", State: "infeasible", Why: "never"},
	}
	if !equality.Semantic.DeepEqual(got.Pods, want) {
		t.Errorf("what fits: got -, want +\n%s", diff.Diff(got.Pods, want))
	}
	if m := most(); m["oc-a"] > 3000 || m["oc-b"] > 2500 {
		t.Errorf("requested at most: %v", m)
	}

	allocatable(t, a, "8")
	if err := c.Delete(t.Context(), podsOf(t, c, shop)["restarts"], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	// What keeps originals goes last.
	if out := overcommitCommand(t, "restore"); !strings.Contains(out, "1 pods restored, 0 not, 0 changed by others since.\n") ||
		!strings.HasSuffix(out, "MutatingAdmissionPolicyBinding temper-overcommit-annotations: deleted\nMutatingAdmissionPolicy temper-overcommit-annotations: deleted\n") {
		t.Errorf("restored with room: %s", out)
	}
	if p := policiesOf(t, c); p.Lower != nil || p.Keep != nil {
		t.Error("the policies are still there, and keep nothing")
	}
	refusedCommand(t, exit.Failed, "no overcommit policy", "remove")
}

// A tenant writes originals before the policy is there, while it is, and once it has ended.
func TestOvercommitForgedOriginals(t *testing.T) {
	c := kubernetesClient(t)
	noPolicies(t, c)
	const shop = "oc-forged"
	namespace(t, shop, nil)
	emptied(t, c, shop)
	tenant := userWith(t, "oc-tenant", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}})
	make := func(as client.Client, name, cpu, original, factor string) {
		t.Helper()
		pod := requesting(shop, name, "", cpu)
		pod.Annotations = map[string]string{}
		for key, value := range map[string]string{overcommit.OriginalAnnotation: original, overcommit.FactorAnnotation: factor} {
			if value != "" {
				pod.Annotations[key] = value
			}
		}
		if err := as.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	state := func(name string) string {
		t.Helper()
		pod := podsOf(t, c, shop)[name]
		return strings.TrimSpace(strings.Join([]string{pod.Spec.Containers[0].Resources.Requests.Cpu().String(), pod.Annotations[overcommit.OriginalAnnotation], pod.Annotations[overcommit.FactorAnnotation]}, " "))
	}
	expect := func(when string, want map[string]string) {
		t.Helper()
		for name, want := range want {
			if got := state(name); got != want {
				t.Errorf("%s: %s: got %q, want %q", when, name, got, want)
			}
		}
	}
	forge := func(name string) {
		t.Helper()
		pod := podsOf(t, c, shop)[name]
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"c=9000m",%q:"0.1"}}}`, overcommit.OriginalAnnotation, overcommit.FactorAnnotation))
		if err := tenant.Patch(t.Context(), pod, patch, client.FieldOwner(overcommit.Manager)); err != nil {
			t.Fatal(err)
		}
	}
	make(tenant, "asked", "1", "c=2000m", "0.5") // as if it had asked for 2
	make(tenant, "greedy", "1", "c=10000m", "0.1")
	make(tenant, "opts-out", "2", "", "0.5")
	overcommitCommand(t, "apply", "--namespaces", shop, "--yes")
	overcommitCommand(t, "repair")
	make(tenant, "half", "2", "", "")
	make(tenant, "copied", "1", "c=10000m", "0.1")
	forge("half")
	if out := overcommitCommand(t, "apply", "--namespaces", shop, "--factor", "0.25", "--yes"); !strings.Contains(out, "they were 0.5 and 10m") {
		t.Errorf("another factor: %s", out)
	}
	make(tenant, "quarter", "2", "", "")
	during := map[string]string{"asked": "1 c=2000m 0.5", "greedy": "1 c=10000m 0.1", "opts-out": "1 c=2000m 0.5", "half": "1 c=2000m 0.5", "copied": "500m c=1000m 0.5", "quarter": "500m c=2000m 0.25"}
	expect("in force", during)

	overcommitCommand(t, "remove")
	make(tenant, "later", "1", "c=2000m", "0.5")
	for _, name := range []string{"half", "copied", "quarter", "later"} {
		forge(name)
	}
	during["later"] = "1"
	expect("ended", during)
	out := overcommitCommand(t, "restore")
	if !strings.Contains(out, "greedy") || !strings.Contains(out, "changed") {
		t.Errorf("restore does not name the forged one:\n%s", out)
	}
	expect("restored", map[string]string{"asked": "2", "greedy": "1 c=10000m 0.1", "opts-out": "2", "half": "2", "copied": "1", "quarter": "2", "later": "1"})

	// Once the policies were deleted by hand nothing is believed, unless one says so.
	overcommitCommand(t, "apply", "--namespaces", shop, "--yes")
	make(tenant, "unguarded", "2", "", "")
	deletePolicies(t, c)
	refusedCommand(t, exit.Failed, "nothing has kept users from writing originals; --unguarded", "restore")
	refusedCommand(t, exit.Failed, "nothing has kept users from writing originals; --unguarded", "restore", "--namespaces", shop)
	expect("by hand", map[string]string{"unguarded": "1 c=2000m 0.5"})
	overcommitCommand(t, "restore", "--unguarded", "--namespaces", shop)
	expect("unguarded", map[string]string{"unguarded": "2", "greedy": "1 c=10000m 0.1"})
}

// Somebody resizes a pod just before each command does: what counts is what the pod then requests.
func TestOvercommitResizedMeanwhile(t *testing.T) {
	c := kubernetesClient(t)
	noPolicies(t, c)
	const shop = "oc-meanwhile"
	namespace(t, shop, nil)
	emptied(t, c, shop)
	if err := c.Create(t.Context(), requesting(shop, "p", "", "2")); err != nil {
		t.Fatal(err)
	}
	overcommitCommand(t, "apply", "--namespaces", shop, "--yes")
	rules, err := policiesOf(t, c).Lowering()
	if err != nil {
		t.Fatal(err)
	}
	first := func(cpu string) client.Client {
		var once sync.Once
		return interceptor.NewClient(c, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, in client.Client, sub string, pod client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			once.Do(func() {
				other := podsOf(t, c, shop)["p"]
				other.Spec.Containers[0].Resources.Requests = cpuOf(cpu)
				if err := c.SubResource("resize").Update(ctx, other); err != nil {
					t.Error(err)
				}
			})
			return in.SubResource(sub).Patch(ctx, pod, patch, options...)
		}})
	}
	expect := func(what, state string, outcomes incluster.Outcomes, err error, cpu, original string) {
		t.Helper()
		pod := podsOf(t, c, shop)["p"]
		if err != nil || len(outcomes) != 1 || outcomes[0].State != state || pod.Spec.Containers[0].Resources.Requests.Cpu().String() != cpu || pod.Annotations[overcommit.OriginalAnnotation] != original {
			t.Errorf("%s: %v, %+v; got %s, want %s of %s", what, err, outcomes, asked(pod), cpu, original)
		}
	}
	count := func(int, int) {}
	outcomes, err := incluster.Repair(t.Context(), first("3"), rules, false, count)
	expect("repair", "lowered", outcomes, err, "1500m", "c=3000m")
	plan, err := incluster.Plan(t.Context(), c, rules)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err = incluster.Restore(t.Context(), first("2500m"), rules, plan, patience, count)
	expect("restore", "changed", outcomes, err, "2500m", "c=3000m")
}

// userWith is somebody who may do this and no more.
func userWith(t *testing.T, name string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	allow(t, name, rules)
	config := rest.CopyConfig(server.Config)
	config.Impersonate.UserName = name
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// allow lets a user do this, and waits until the API server knows.
func allow(t *testing.T, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	c := kubernetesClient(t)
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}},
	} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
	}
	resource, subresource, _ := strings.Cut(rules[0].Resources[0], "/")
	eventually(t, "the API server knows what "+user+" may do", func() bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: rules[0].APIGroups[0], Resource: resource, Subresource: subresource, Verb: rules[0].Verbs[0]}}}
		return c.Create(t.Context(), review) == nil && review.Status.Allowed
	})
}

// documentedRoles are those of docs/overcommit.md, by command.
func documentedRoles(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/overcommit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "<!-- roles")
	_, after, _ = strings.Cut(after, "```yaml\n")
	block, _, _ := strings.Cut(after, "```")
	roles := map[string][]rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(block, "\n---\n") {
		var role rbacv1.ClusterRole
		if err := utilyaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatalf("%v: %s", err, document)
		}
		roles[strings.TrimPrefix(role.Name, "overcommit-")] = role.Rules
	}
	return roles
}

// Each command does its work with the role that the page gives it. Without any part of it, it fails, and names what it lacks.
func TestOvercommitSmallestRoles(t *testing.T) {
	c := kubernetesClient(t)
	noPolicies(t, c)
	const shop = "oc-roles"
	namespace(t, shop, nil)
	emptied(t, c, shop)
	nodeOf(t, "oc-role", "8")
	rules, err := overcommit.Compile(overcommit.Policy{Namespaces: []string{shop}, Factor: 0.5, Floor: 10, Tiers: []tier.Tier{tier.Standard}})
	if err != nil {
		t.Fatal(err)
	}
	none := func() { deletePolicies(t, c) }
	in := map[string]overcommit.Namespace{shop: {Name: shop}}
	write := func(objects []runtime.Object) {
		t.Helper()
		if _, err := incluster.Write(t.Context(), c, objects, false); err != nil {
			t.Fatal(err)
		}
	}
	await := func(as *overcommit.Rules) {
		t.Helper()
		if err := incluster.Await(t.Context(), c, as, in, patience); err != nil {
			t.Fatal(err)
		}
	}
	apply := func() { write(rules.Manifests()); await(rules) }
	empty := func() {
		t.Helper()
		if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(shop), client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	// pod makes one that is so, whatever the policy makes of it.
	pod := func(cpu string, annotations string) {
		t.Helper()
		empty()
		made := requesting(shop, "p", "oc-role", cpu)
		err := c.Create(t.Context(), made)
		for _, patch := range []client.Patch{client.RawPatch(types.MergePatchType, []byte(annotations)),
			client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil, `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":%q}}}]}}`, cpu))} {
			if err == nil && patch.Type() == types.MergePatchType {
				err = c.Patch(t.Context(), made, patch, client.FieldOwner(overcommit.Manager))
			} else if err == nil {
				err = c.SubResource("resize").Patch(t.Context(), made, patch)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lowered := func() {
		pod("1", fmt.Sprintf(`{"metadata":{"annotations":{%q:"c=2000m",%q:"0.5"}}}`, overcommit.OriginalAnnotation, overcommit.FactorAnnotation))
	}
	missed := func() {
		pod("2", fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null}}}`, overcommit.OriginalAnnotation, overcommit.FactorAnnotation))
	}
	roles := documentedRoles(t)
	for _, command := range []struct {
		args []string
		// What gives it something to do; the ways together make it do all that it does.
		prepare []func()
	}{
		{[]string{"report"}, []func(){apply}},
		{[]string{"repair"}, []func(){func() { apply(); missed() }}},
		{[]string{"remove"}, []func(){func() { write(rules.Manifests()); lowered() }, func() { write(rules.Manifests()); empty() }}},
		{[]string{"restore", "--timeout", "1ms"}, []func(){func() { write(rules.Closing()); await(rules.Closed()); lowered() }}},
		{[]string{"apply", "--namespaces", shop, "--yes"}, []func(){none}},
	} {
		what := command.args[0]
		whole := single(roles[what])
		if len(whole) == 0 {
			t.Fatalf("the page has no role for %s", what)
		}
		for without := -1; without < len(whole); without++ {
			rules, lacks := whole, ""
			if without >= 0 {
				rules = slices.Delete(slices.Clone(whole), without, without+1)
				lacks = fmt.Sprintf("cannot %s resource %q", whole[without].Verbs[0], whole[without].Resources[0])
			}
			if lacks == `cannot get resource "limitranges"` {
				lacks = `must have "get" permission on all objects of the referenced paramKind (kind=LimitRange`
			}
			user := fmt.Sprintf("oc-%s-%d", what, without)
			allow(t, user, rules)
			refused := ""
			for _, prepare := range command.prepare {
				if lacks != "" && strings.Contains(refused, lacks) {
					break // the other way may not need it
				}
				prepare()
				out, said, status := kubectlTemper(t, server.KubeConfig, append([]string{"overcommit", "--as", user}, command.args...)...)
				if status == exit.Failed && !strings.Contains(said, "1 pods are not restored") || strings.Contains(out, "failed  ") {
					refused += out + said
				}
			}
			if refused == "" && lacks != "" || !strings.Contains(refused, lacks) || lacks == "" && refused != "" {
				t.Errorf("%s, lacking %q: %s", what, lacks, refused)
			}
		}
	}
}

// single are rules of one resource and one verb each.
func single(rules []rbacv1.PolicyRule) (all []rbacv1.PolicyRule) {
	for _, r := range rules {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				all = append(all, rbacv1.PolicyRule{APIGroups: r.APIGroups, Resources: []string{resource}, Verbs: []string{verb}})
			}
		}
	}
	return all
}
