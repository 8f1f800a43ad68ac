//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/collect"
	"temper.dev/temper/internal/capacity/consolidate"
	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/sample"
	"temper.dev/temper/internal/capacity/snapshot"
)

// What a test's executor takes as long, on a machine that has other things to do.
var testTiming = consolidate.Timing{Lease: 6 * time.Second, Plan: 5 * time.Minute, Pod: 5 * time.Second, Poll: 20 * time.Millisecond, Back: 10 * time.Second}

// consolidating is a cluster with a real API server and scheduler. The test is its controllers and kubelets.
type consolidating struct {
	*realCluster
	config     *rest.Config
	kubeconfig []byte
	// Held while controllers and kubelets look and act: what they have seen must not be taken away in between.
	playing *sync.Mutex
}

func consolidationCluster(t *testing.T) *consolidating {
	t.Helper()
	cluster, e := schedulingCluster(t, collect.Scheme(coordinationv1.AddToScheme, rbacv1.AddToScheme), manifests+"/crds")
	c := &consolidating{&realCluster{T: t, Client: cluster}, e.Config, e.KubeConfig, &sync.Mutex{}}
	for _, name := range []string{sample.Namespace, "temper-system"} {
		c.must(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	ctx, stop := context.WithCancel(context.Background())
	var playing sync.WaitGroup
	playing.Go(func() { c.play(ctx) })
	t.Cleanup(func() { stop(); playing.Wait() })
	return c
}

// fill makes nodes a and b, which can be emptied, c, which has the room for their pods, and d, which somebody has cordoned.
func (c *consolidating) fill() {
	c.Helper()
	s := &snapshot.Snapshot{}
	for _, name := range []string{"a", "b", "c", "d"} {
		sample.Node(s, name, 4, "16Gi")
		node := s.Nodes[len(s.Nodes)-1]
		node.Spec.Unschedulable = name == "d"
		c.make(node.DeepCopy(), node.DeepCopy())
		c.report(name, metav1.ConditionTrue)
	}
	c.app("a1", "1", "a")
	c.app("a2", "1", "a")
	c.app("b1", "500m", "b")
	c.app("hold", "500m", "c", func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} })
	c.running()
}

// report is what the node's agent says.
func (c *consolidating) report(node string, enforced metav1.ConditionStatus) {
	c.Helper()
	report := &v1alpha1.TemperNode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	c.must(client.IgnoreAlreadyExists(c.Create(c.Context(), report)))
	c.must(c.Get(c.Context(), client.ObjectKeyFromObject(report), report))
	report.Status = v1alpha1.TemperNodeStatus{Reported: metav1.Now(), Conditions: []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: enforced,
		Reason: "Test", LastTransitionTime: metav1.Now()}}}
	c.must(c.Status().Update(c.Context(), report))
}

// app makes a ReplicaSet of one pod, which is on a node at first.
func (c *consolidating) app(name, cpu, node string, change ...func(*corev1.Pod)) {
	c.Helper()
	is := map[string]string{"app": name}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: name, Labels: is}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64), Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: cpuOf(cpu)}}}}}
	for _, f := range change {
		f(pod)
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: name}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0)),
		Selector: &metav1.LabelSelector{MatchLabels: is}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: is, Annotations: pod.Annotations}, Spec: pod.Spec}}}
	c.must(c.Create(c.Context(), set))
	pod.Spec.NodeName = node
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	c.must(c.Create(c.Context(), pod))
	c.must(c.Patch(c.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))))
}

// play is the part of controllers and kubelets: it makes pods anew, runs those that have a node, and keeps budgets. What
// fails because others have written at the same time is done again.
func (c *consolidating) play(ctx context.Context) {
	for ctx.Err() == nil {
		c.playOnce(ctx)
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *consolidating) playOnce(ctx context.Context) {
	c.playing.Lock()
	defer c.playing.Unlock()
	var pods corev1.PodList
	var sets appsv1.ReplicaSetList
	var budgets policyv1.PodDisruptionBudgetList
	// Sets before pods: one that wants a pod is seen with it, since app makes the pod first.
	if errors.Join(c.List(ctx, &sets), c.List(ctx, &pods), c.List(ctx, &budgets)) != nil {
		return
	}
	of := map[types.UID]int32{}
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && pod.DeletionTimestamp == nil {
			of[owner.UID]++
		}
		if pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodRunning {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			_ = c.Status().Update(ctx, &pod)
		}
	}
	for _, set := range sets.Items {
		if of[set.UID] >= *set.Spec.Replicas {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
		pod.Namespace, pod.GenerateName = set.Namespace, set.Name+"-"
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		_ = c.Create(ctx, pod)
	}
	for _, budget := range budgets.Items {
		keepBudget(&budget, pods.Items)
		_ = c.Status().Update(ctx, &budget)
	}
}

func keepBudget(b *policyv1.PodDisruptionBudget, pods []corev1.Pod) {
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation}
	for _, pod := range pods {
		if pod.Labels["app"] == b.Spec.Selector.MatchLabels["app"] {
			b.Status.ExpectedPods++
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				b.Status.CurrentHealthy++
			}
		}
	}
	b.Status.DesiredHealthy = max(0, b.Status.ExpectedPods-b.Spec.MaxUnavailable.IntVal)
	b.Status.DisruptionsAllowed = max(0, b.Status.CurrentHealthy-b.Status.DesiredHealthy)
}

// running awaits that all pods have a node and run.
func (c *consolidating) running() {
	c.Helper()
	eventually(c.T, "all pods run", func() bool {
		return !slices.ContainsFunc(c.pods(), func(p corev1.Pod) bool { return p.Spec.NodeName == "" || p.Status.Phase != corev1.PodRunning })
	})
}

func (c *consolidating) empty() {
	c.Helper()
	c.playing.Lock()
	defer c.playing.Unlock()
	at, in := client.GracePeriodSeconds(0), client.InNamespace(sample.Namespace)
	c.must(c.DeleteAllOf(c.Context(), &appsv1.ReplicaSet{}, in))
	c.must(c.DeleteAllOf(c.Context(), &policyv1.PodDisruptionBudget{}, in))
	eventually(c.T, "no pod is left", func() bool {
		pods := c.pods()
		for _, pod := range pods {
			if len(pod.Finalizers) > 0 {
				_ = c.Patch(c.Context(), &pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			}
			_ = c.Delete(c.Context(), &pod, at)
		}
		return len(pods) == 0
	})
	c.must(c.DeleteAllOf(c.Context(), &corev1.Node{}))
	c.must(c.DeleteAllOf(c.Context(), &coordinationv1.Lease{}, client.InNamespace("temper-system")))
	c.must(c.DeleteAllOf(c.Context(), &corev1.ConfigMap{}, client.InNamespace("kube-system")))
}

// executor is one of its own, whose requests pass through what is given.
func (c *consolidating) executor(owner string, through func(http.RoundTripper) http.RoundTripper) *consolidate.Executor {
	c.Helper()
	config := rest.CopyConfig(c.config)
	if through != nil {
		config.Wrap(through)
	}
	cluster, err := client.New(config, client.Options{Scheme: c.Scheme()})
	c.must(err)
	leases, err := coordinationclient.NewForConfig(config)
	c.must(err)
	return &consolidate.Executor{Cluster: cluster, Leases: leases, Namespace: "temper-system", Owner: owner, Now: time.Now, Timing: testTiming}
}

func (c *consolidating) plan() *consolidate.Plan {
	c.Helper()
	s, err := consolidate.Snapshot(c.Context(), c.Client, time.Now())
	c.must(err)
	found, err := plan.Make(c.Context(), s.Snapshot, plan.Options{})
	c.must(err)
	return consolidate.NewPlan(s.Snapshot, found, true)
}

func (c *consolidating) node(name string) *corev1.Node {
	c.Helper()
	var node corev1.Node
	c.must(c.Get(c.Context(), client.ObjectKey{Name: name}, &node))
	return &node
}

// cordoned are the nodes that are, and of these the ones that are noted as emptied. A marker on others is an error.
func (c *consolidating) cordoned() (all, emptied []string) {
	c.Helper()
	var nodes corev1.NodeList
	c.must(c.List(c.Context(), &nodes))
	for _, node := range nodes.Items {
		if node.Spec.Unschedulable {
			all = append(all, node.Name)
		}
		marker, ok := node.Annotations[consolidate.MarkerAnnotation]
		switch {
		case !ok:
		case strings.Contains(marker, `"emptied"`) && node.Spec.Unschedulable:
			emptied = append(emptied, node.Name)
		default:
			c.Errorf("node %s, cordoned %t, has the marker %s without a plan that lives", node.Name, node.Spec.Unschedulable, marker)
		}
	}
	return all, emptied
}

// as is somebody else, who changes nodes.
func (c *consolidating) cordonAs(who, node string, on bool) {
	c.Helper()
	c.must(c.Patch(c.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)), client.FieldOwner(who)))
}

func (c *consolidating) podOf(app string) *corev1.Pod {
	c.Helper()
	for _, pod := range c.pods() {
		if pod.Labels["app"] == app {
			return &pod
		}
	}
	c.Fatalf("app %s has no pod", app)
	return nil
}

// budget returns once its controller, which this test plays, has seen it: until then the API server has a client wait for 10 s.
func (c *consolidating) budget(name, app string, most int32) {
	c.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: new(intstr.FromInt32(most)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
	c.must(c.Create(c.Context(), b))
	eventually(c.T, "budget "+name+" is seen", func() bool {
		c.must(c.Get(c.Context(), client.ObjectKeyFromObject(b), b))
		return b.Status.ObservedGeneration == b.Generation
	})
}
