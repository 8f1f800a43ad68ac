//go:build kubernetes

package kubernetes

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/sample"
	"temper.dev/temper/internal/capacity/snapshot"
)

var (
	capacityClusters = flag.Int("capacity-clusters", 12, "how many random clusters are planned for, beside a real scheduler")
	capacitySeed     = flag.Uint64("capacity-seed", 1, "the seed of the first")
)

// Plans for random clusters are carried out beside a real API server and kube-scheduler, with its default profile and its own
// chance: it empties as many nodes as are planned, and the same pods are pending as before. The test is what else there is:
// it evicts by the eviction API, makes pods anew as their controllers would, runs them as a kubelet would, and keeps the
// budgets' status.
func TestPlansComeTrueInARealCluster(t *testing.T) {
	cluster, _ := schedulingCluster(t, scheme.Scheme)
	c := &realCluster{T: t, Client: cluster}
	c.must(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sample.Namespace}}))
	var emptied, moves int
	for seed := *capacitySeed; seed < *capacitySeed+uint64(*capacityClusters); seed++ {
		s, err := sample.Random(seed)
		c.must(err)
		c.fill(s)
		c.settle()
		before := c.pending()
		p, err := plan.Make(t.Context(), c.snapshot(s), plan.Options{})
		c.must(err)
		c.carryOut(p)
		if got, want := c.emptied(p.Nodes()), p.Nodes(); !slices.Equal(got, want) {
			t.Errorf("cluster of seed %d: emptied %v, planned %v", seed, got, want)
		}
		if after := c.pending(); !slices.Equal(after, before) {
			t.Errorf("cluster of seed %d: pending %v, before %v", seed, after, before)
		}
		emptied += len(p.Nodes())
		moves += p.Moves()
		c.clear()
	}
	// A planner that never empties anything keeps all its promises.
	if emptied < *capacityClusters {
		t.Errorf("%d nodes of %d clusters are emptied, want one of each in the mean", emptied, *capacityClusters)
	}
	t.Logf("%d clusters from seed %d: %d nodes emptied by %d moves", *capacityClusters, *capacitySeed, emptied, moves)
}

// schedulingCluster has an API server of its own, where no other test's pods are in the way, and a scheduler.
func schedulingCluster(t *testing.T, kinds *runtime.Scheme, crds ...string) (client.Client, *envtest.Environment) {
	t.Helper()
	e := apiServer()
	e.CRDDirectoryPaths = crds
	// No controller would end what these begin: taints of nodes, and protection of volumes.
	e.ControlPlane.GetAPIServer().Configure().Set("disable-admission-plugins", "ServiceAccount", "TaintNodesByCondition", "StorageObjectInUseProtection")
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	startScheduler(t, e)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return c, e
}

func startScheduler(t *testing.T, e *envtest.Environment) {
	t.Helper()
	user, err := e.ControlPlane.AddUser(envtest.User{Name: "scheduler", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(os.Getenv("TEMPER_KUBERNETES"), "kube-scheduler"), "--kubeconfig", file, "--leader-elect=false", "--secure-port=0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("the scheduler does not start; 'make kubernetes' builds it: %v", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the scheduler said:\n%s", text[max(0, len(text)-4000):])
		}
	})
}

// realCluster is the part of controllers and kubelets.
type realCluster struct {
	*testing.T
	client.Client
}

func (c *realCluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// make makes an object and gives it its status.
func (c *realCluster) make(object, withStatus client.Object) {
	c.Helper()
	c.must(c.Create(c.Context(), object))
	if withStatus == nil {
		return
	}
	withStatus.SetResourceVersion(object.GetResourceVersion())
	withStatus.SetUID(object.GetUID())
	c.must(c.Status().Update(c.Context(), withStatus))
}

// fill makes a sample's objects. The snapshot's own stay as they are.
func (c *realCluster) fill(s *snapshot.Snapshot) {
	for _, class := range s.PriorityClasses {
		c.must(client.IgnoreAlreadyExists(c.Create(c.Context(), class.DeepCopy())))
	}
	for _, node := range s.Nodes {
		c.make(node.DeepCopy(), node.DeepCopy())
	}
	for _, volume := range s.PersistentVolumes {
		volume := volume.DeepCopy()
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		c.make(volume.DeepCopy(), volume)
	}
	for _, claim := range s.PersistentVolumeClaims {
		c.make(claim.DeepCopy(), claim.DeepCopy())
	}
	for _, set := range s.ReplicaSets {
		set := set.DeepCopy()
		set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
		c.make(set, nil)
	}
	for _, pod := range s.Pods {
		c.makePod(pod)
	}
	for _, budget := range s.PodDisruptionBudgets {
		c.make(budget.DeepCopy(), budget.DeepCopy())
	}
	c.keepBudgets()
}

// makePod makes a pod that ends at once when it is to, since no kubelet would say that it has.
func (c *realCluster) makePod(from *corev1.Pod) {
	pod := from.DeepCopy()
	pod.UID, pod.ResourceVersion = "", ""
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = "none"
	}
	if pod.Spec.PriorityClassName == "" {
		pod.Spec.Priority = nil // admission computes it
	}
	c.must(c.Create(c.Context(), pod))
	c.runPod(pod)
}

// runPod says of a pod with a node that it runs, as its kubelet would.
func (c *realCluster) runPod(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	c.must(c.Status().Update(c.Context(), pod))
}

func (c *realCluster) pods() []corev1.Pod {
	var list corev1.PodList
	c.must(c.List(c.Context(), &list))
	return list.Items
}

// settle awaits that the scheduler has tried every pod, and lets those run that have a node.
func (c *realCluster) settle() {
	c.Helper()
	eventually(c.T, "every pod has a node or is found to fit nowhere", func() bool {
		for _, pod := range c.pods() {
			switch {
			case pod.Spec.NodeName != "":
				if pod.Status.Phase != corev1.PodRunning {
					c.runPod(&pod)
				}
			case !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
			}):
				return false
			}
		}
		return true
	})
}

// keepBudgets writes the status of budgets, as their controller would.
func (c *realCluster) keepBudgets() {
	var list policyv1.PodDisruptionBudgetList
	c.must(c.List(c.Context(), &list))
	for _, budget := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		c.must(err)
		status := &budget.Status
		*status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation}
		for _, pod := range c.pods() {
			if !selector.Matches(labels.Set(pod.Labels)) {
				continue
			}
			status.ExpectedPods++
			if pod.Status.Phase == corev1.PodRunning {
				status.CurrentHealthy++
			}
		}
		status.DesiredHealthy = max(0, status.ExpectedPods-budget.Spec.MaxUnavailable.IntVal)
		status.DisruptionsAllowed = max(0, status.CurrentHealthy-status.DesiredHealthy)
		c.must(c.Status().Update(c.Context(), &budget))
	}
}

// snapshot is what the API server has now, with what only the sample knows.
func (c *realCluster) snapshot(of *snapshot.Snapshot) *snapshot.Snapshot {
	s := &snapshot.Snapshot{TemperNodes: of.TemperNodes, Cores: of.Cores}
	var nodes corev1.NodeList
	var volumes corev1.PersistentVolumeList
	var claims corev1.PersistentVolumeClaimList
	var budgets policyv1.PodDisruptionBudgetList
	var classes schedulingv1.PriorityClassList
	var sets appsv1.ReplicaSetList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&nodes, &volumes, &claims, &budgets, &classes, &sets, &namespaces} {
		c.must(c.List(c.Context(), list))
	}
	s.Nodes, s.Pods, s.PersistentVolumes, s.PersistentVolumeClaims = pointers(nodes.Items), pointers(c.pods()), pointers(volumes.Items), pointers(claims.Items)
	s.PodDisruptionBudgets, s.PriorityClasses, s.ReplicaSets, s.Namespaces = pointers(budgets.Items), pointers(classes.Items), pointers(sets.Items), pointers(namespaces.Items)
	return s
}

func pointers[T any](items []T) (to []*T) {
	for i := range items {
		to = append(to, &items[i])
	}
	return to
}

// carryOut cordons the plan's nodes, and then evicts one pod after another.
func (c *realCluster) carryOut(p *plan.Plan) {
	c.Helper()
	for _, node := range p.Nodes() {
		cordon := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`))
		c.must(c.Patch(c.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, cordon))
	}
	c.awaitCordons()
	for _, step := range p.Steps {
		for _, move := range step.Moves {
			c.move(move.Pod)
		}
	}
}

// awaitCordons waits until the scheduler has heard of all cordons: it watches nodes and pods apart, and would put the first
// pod on a node whose cordon it has not heard of yet. What it says of a pod that fits nowhere counts the cordoned nodes.
func (c *realCluster) awaitCordons() {
	c.Helper()
	var nodes corev1.NodeList
	c.must(c.List(c.Context(), &nodes))
	cordoned := len(slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return !n.Spec.Unschedulable }))
	if cordoned == 0 {
		return
	}
	want := fmt.Sprintf(" %d node(s) were unschedulable", cordoned)
	eventually(c.T, "the scheduler has heard of all cordons", func() bool {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "probe"}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"no": "node"}, Containers: []corev1.Container{{Name: "main"}},
		}}
		c.makePod(probe)
		said := c.saidOf(client.ObjectKeyFromObject(probe))
		c.must(c.Delete(c.Context(), probe, client.GracePeriodSeconds(0)))
		return strings.Contains(said, want)
	})
}

// saidOf is what the scheduler says of a pod that it finds no node for.
func (c *realCluster) saidOf(key types.NamespacedName) (said string) {
	c.Helper()
	eventually(c.T, "the scheduler says that the pod fits nowhere", func() bool {
		var pod corev1.Pod
		c.must(c.Get(c.Context(), key, &pod))
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
				said = condition.Message
			}
		}
		return said != ""
	})
	return said
}

func (c *realCluster) move(key string) {
	c.Helper()
	namespace, name := filepath.Dir(key), filepath.Base(key)
	var pod corev1.Pod
	c.must(c.Get(c.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &pod))
	if err := c.SubResource("eviction").Create(c.Context(), &pod, &policyv1.Eviction{}); err != nil {
		c.Errorf("pod %s: the eviction API refuses: %v", key, err)
		return
	}
	anew := pod.DeepCopy()
	anew.Spec.NodeName, anew.Status, anew.DeletionTimestamp = "", corev1.PodStatus{}, nil
	c.makePod(anew)
	c.settle()
	c.keepBudgets()
}

// emptied are those of the nodes that hold nothing but DaemonSets' pods.
func (c *realCluster) emptied(nodes []string) []string {
	return slices.DeleteFunc(nodes, func(node string) bool {
		return slices.ContainsFunc(c.pods(), func(pod corev1.Pod) bool {
			return pod.Spec.NodeName == node && pod.OwnerReferences[0].Kind != "DaemonSet"
		})
	})
}

// pending are the pods without a node, sorted.
func (c *realCluster) pending() (names []string) {
	for _, pod := range c.pods() {
		if pod.Spec.NodeName == "" {
			names = append(names, snapshot.Key(&pod))
		}
	}
	slices.Sort(names)
	return names
}

// clear removes what the sample has made.
func (c *realCluster) clear() {
	at, in := client.GracePeriodSeconds(0), client.InNamespace(sample.Namespace)
	for _, kind := range []client.Object{&corev1.Pod{}, &policyv1.PodDisruptionBudget{}, &appsv1.ReplicaSet{}, &corev1.PersistentVolumeClaim{}} {
		c.must(c.DeleteAllOf(context.Background(), kind, in, at))
	}
	for _, kind := range []client.Object{&corev1.PersistentVolume{}, &corev1.Node{}} {
		c.must(c.DeleteAllOf(context.Background(), kind, at))
	}
}
