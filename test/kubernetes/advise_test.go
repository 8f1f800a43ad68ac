//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/advice"
)

// Advice of a cluster before Temper is installed, and then with it. It is asked by a user who may read, and nothing else.
func TestAdvise(t *testing.T) {
	e := apiServer()
	// No controller would end what these begin.
	e.ControlPlane.GetAPIServer().Configure().Set("disable-admission-plugins", "ServiceAccount", "TaintNodesByCondition")
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Stop() })
	config.QPS = -1
	scheme := clientscheme.Scheme
	for _, add := range []func() error{func() error { return v1alpha1.AddToScheme(scheme) }, func() error { return apiextensionsv1.AddToScheme(scheme) }} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &adviseCluster{realCluster{t, c}, reader(t, e, c)}
	s.fill()

	before := s.advise()
	if !before.IfEnforced || before.Plan.NodesAfter >= before.Plan.NodesBefore {
		t.Errorf("before Temper is installed: if enforced %t, %d of %d nodes; want true, and fewer", before.IfEnforced, before.Plan.NodesAfter, before.Plan.NodesBefore)
	}
	if web := podNamed(t, before, "shop/web-0"); web.Tier != tier.Standard || web.Why != "not enough data: 0 h of 24" || web.MomentCPUs != nil {
		t.Errorf("before Temper is installed: %+v", web)
	}
	if !slices.ContainsFunc(before.Notes, func(n string) bool { return strings.Contains(n, "Temper's own TierPolicy stands in") }) {
		t.Errorf("notes are %q", before.Notes)
	}

	s.serve("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")
	s.serve("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers")
	s.measure()
	s.install()
	after := s.advise()
	if after.IfEnforced || after.Plan.NodesAfter != 3 {
		t.Errorf("with Temper, on b alone: if enforced %t, %d nodes; want false, 3", after.IfEnforced, after.Plan.NodesAfter)
	}
	// By requests 2 and by the moment 3.5: what is known for a moment only counts if it is more.
	if a := nodeNamed(t, after, "a"); a.CriticalCPUs != 3.5 || a.Fits || !a.CoresAssumed || a.RoomCPUs != 3 || a.NotEnforced == "" {
		t.Errorf("node a is %+v", a)
	}
	if b := nodeNamed(t, after, "b"); b.NotEnforced != "" {
		t.Errorf("node b is %+v, want enforced", b)
	}
	if d := nodeNamed(t, after, "d"); !strings.Contains(d.NotEnforced, "has not said yet") {
		t.Errorf("node d, whose report is old, is %+v", d)
	}
	if web := podNamed(t, after, "shop/web-0"); web.Tier != tier.Critical || web.AdvisedCPUs != nil || *web.MomentCPUs != 3.5 {
		t.Errorf("with Temper: %+v", web)
	}
	if batch := podNamed(t, after, "work/batch-0"); batch.AdvisedCPUs == nil || *batch.AdvisedCPUs != 0.25 || batch.Hours < 29 {
		t.Errorf("with a VerticalPodAutoscaler for 30 hours: %+v", batch)
	}
	for _, n := range after.Namespaces {
		if n.Namespace == "work" && (n.GiveBackCPUs == nil || *n.GiveBackCPUs != 0.75) {
			t.Errorf("namespace work: %+v, want 0.75 to give back", n)
		}
	}
	s.saysWhatIsWrong(e)
	s.sameFromASnapshot(after)
}

// adviseCluster is a cluster, and the kubeconfig of a user who may only read it.
type adviseCluster struct {
	realCluster
	kubeconfig []byte
}

func reader(t *testing.T, e *envtest.Environment, c client.Client) []byte {
	t.Helper()
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "reader"}}},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	user, err := e.ControlPlane.AddUser(envtest.User{Name: "reader"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// fill makes four nodes of 8 CPUs, a service on a, and batch work on b.
func (c *adviseCluster) fill() {
	for _, ns := range []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.HighestTierLabel: "critical"}}}, {ObjectMeta: metav1.ObjectMeta{Name: "work"}},
	} {
		c.must(c.Create(c.Context(), ns))
	}
	c.must(c.Create(c.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "temper-critical"}, Value: 1000}))
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")}
	for _, name := range []string{"a", "b", "c", "d"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		c.make(node.DeepCopy(), node)
	}
	c.pod("shop", "web", "web-0", "a", "2", "")
	c.pod("work", "batch", "batch-0", "b", "1", "")
}

func (c *adviseCluster) pod(namespace, owner, name, node, cpu, class string) {
	pod := podOf(namespace, name, class)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet", Name: owner, UID: "1", Controller: new(true)}}
	pod.Spec.NodeName = node
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi")}
	c.makePod(pod)
}

// serve has the API server keep objects of a kind that others serve in a real cluster, in the form that they have there.
func (c *adviseCluster) serve(group, version, kind, plural string) {
	c.Helper()
	all := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a test's"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: all}}},
		},
	}
	c.must(c.Create(c.Context(), crd))
	eventually(c.T, kind+" is served", func() bool {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": group + "/" + version, "kind": kind + "List"}}
		return c.List(c.Context(), list) == nil
	})
}

// measure says what the pods use at this moment, and what is recommended for the batch work since 30 hours.
func (c *adviseCluster) measure() {
	c.Helper()
	for _, o := range []map[string]any{
		{"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": map[string]any{"namespace": "shop", "name": "web-0"},
			"timestamp": time.Now().Format(time.RFC3339), "window": "15s", "containers": []any{map[string]any{"name": "c", "usage": map[string]any{"cpu": "3500m", "memory": "1Mi"}}}},
		{"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": map[string]any{"namespace": "work", "name": "batch"},
			"spec": map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "batch"}},
			"status": map[string]any{
				"recommendation": map[string]any{"containerRecommendations": []any{map[string]any{"containerName": "c", "target": map[string]any{"cpu": "250m"}}}},
				"conditions":     []any{map[string]any{"type": "RecommendationProvided", "status": "True", "lastTransitionTime": time.Now().Add(-30 * time.Hour).Format(time.RFC3339)}},
			}},
	} {
		c.must(c.Create(c.Context(), &unstructured.Unstructured{Object: o}))
	}
}

// install has what Temper adds, with agents that report from b and, an hour ago, from d. The service becomes critical.
func (c *adviseCluster) install() {
	c.Helper()
	for _, name := range []string{"tierpolicies", "tempernodes"} {
		list, err := objects(filepath.Join(manifests, "crds", "temper.dev_"+name+".yaml"))
		c.must(err)
		c.must(c.Create(c.Context(), list[0]))
	}
	var policy []*unstructured.Unstructured
	eventually(c.T, "TierPolicies are served", func() bool {
		var list v1alpha1.TierPolicyList
		var nodes v1alpha1.TemperNodeList
		return c.List(c.Context(), &list) == nil && c.List(c.Context(), &nodes) == nil
	})
	policy, err := objects(filepath.Join(manifests, "tierpolicy.yaml"))
	c.must(err)
	c.must(c.Create(c.Context(), policy[0]))
	// Both nodes' clocks are an hour behind. Of d's report nobody but the node itself says when it was: it is too old.
	reported := time.Now().Add(-time.Hour)
	for _, name := range []string{"b", "d"} {
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: "of-its-node"} // without any field of its own nobody notes who wrote it
		report := &v1alpha1.TemperNode{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{owner}}}
		c.must(c.Create(c.Context(), report))
		report.Status = v1alpha1.TemperNodeStatus{Reported: metav1.NewTime(reported), Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue, Reason: "Attached", LastTransitionTime: metav1.NewTime(reported)}}}
		c.must(c.Status().Update(c.Context(), report))
		if name == "d" {
			c.must(c.Patch(c.Context(), report, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))))
		}
	}
	c.must(c.Delete(c.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}, client.GracePeriodSeconds(0)))
	c.pod("shop", "web", "web-0", "a", "2", "temper-critical")
}

func (c *adviseCluster) advise(args ...string) (a advice.Advice) {
	c.Helper()
	out, errs, status := kubectlTemper(c.T, c.kubeconfig, append([]string{"advise", "--json"}, args...)...)
	if status != 0 {
		c.Fatalf("status %d: %s", status, errs)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		c.Fatalf("%v:\n%s", err, out)
	}
	if a.SchemaVersion != advice.SchemaVersion || a.Plan == nil || !a.Plan.Complete {
		c.Fatalf("schema version %d, plan %+v", a.SchemaVersion, a.Plan)
	}
	return a
}

// sameFromASnapshot makes the advice again from the snapshot that it rests on, without a cluster.
func (c *adviseCluster) sameFromASnapshot(want advice.Advice) {
	c.Helper()
	folder := c.TempDir()
	file, page := filepath.Join(folder, "cluster.json"), filepath.Join(folder, "advice.html")
	c.advise("--save", file, "--html", page)
	c.kubeconfig = nil
	got := c.advise("-f", file)
	got.Notes, want.Notes = nil, nil
	first, _ := json.Marshal(want)
	again, _ := json.Marshal(got)
	// A recommendation's age goes on between two looks.
	if normal(string(first)) != normal(string(again)) {
		c.Errorf("from the snapshot:\n%s\nwant\n%s", again, first)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "<svg") {
		c.Errorf("the page: %v", err)
	}
	if one := c.advise("-f", file, "node", "a"); len(one.Nodes) != 1 || len(one.Pods) != 1 {
		c.Errorf("node a: %+v", one)
	}
}

// normal is JSON without the hours of data.
func normal(text string) string {
	var kept []string
	for field := range strings.SplitSeq(text, ",") {
		if !strings.Contains(field, `"hours":`) {
			kept = append(kept, field)
		}
	}
	return strings.Join(kept, ",")
}

func (c *adviseCluster) saysWhatIsWrong(e *envtest.Environment) {
	c.Helper()
	saysWhatIsWrong(c.T, []string{"advise"}, []wrongUse{
		{"a word too many", e.KubeConfig, []string{"nodes"}, 2, "advise"},
		{"no node's name", e.KubeConfig, []string{"node"}, 2, "NAME is missing"},
		{"a node that is not there", e.KubeConfig, []string{"node", "z"}, 1, `there is no node "z"`},
		{"a shape that is none", e.KubeConfig, []string{"--shape", "large"}, 2, "as in 16x64Gi"},
		{"no time", e.KubeConfig, []string{"--for", "0s"}, 2, "leaves no time"},
		{"half a day", e.KubeConfig, []string{"--window", "12h"}, 2, "less than a day"},
		{"a Prometheus that is away", e.KubeConfig, []string{"--prometheus", "http://127.0.0.1:1"}, 1, "check --prometheus"},
		{"files that are not there", nil, []string{"-f", "nowhere"}, 2, "no such file"},
		{"no cluster", nil, nil, 9, "no kubeconfig names a cluster"},
	})
}

func podNamed(t *testing.T, a advice.Advice, name string) advice.Pod {
	t.Helper()
	for _, p := range a.Pods {
		if p.Pod == name {
			return p
		}
	}
	t.Fatalf("no advice on pod %s: %+v", name, a.Pods)
	return advice.Pod{}
}

func nodeNamed(t *testing.T, a advice.Advice, name string) advice.Node {
	t.Helper()
	for _, n := range a.Nodes {
		if n.Node == name {
			return n
		}
	}
	t.Fatalf("no advice on node %s: %+v", name, a.Nodes)
	return advice.Node{}
}
