package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"temper.dev/temper/api/v1alpha1"
)

// seen is a cluster with one node, one pod and its namespace, of which all is known.
func seen(t *testing.T) *cluster {
	t.Helper()
	temper, err := shipped(Namespace)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{temper: temper, version: "v1.36.3", hidden: map[string]error{}, namespaces: map[string]labels.Set{"shop": nil}}
	c.nodes = []corev1.Node{node("one", nil, "6.18.15")}
	c.pods = []corev1.Pod{pod("web")}
	c.compile(nil)
	return c
}

func node(name string, set map[string]string, kernel string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}}
	for label, value := range set {
		n.Labels[label] = value
	}
	n.Status.NodeInfo.KernelVersion = kernel
	return n
}

func pod(name string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Name: "c"}}}}
}

func TestWhatANodeWouldHave(t *testing.T) {
	tainted := node("n", nil, "6.18.1")
	tainted.Spec.Taints = []corev1.Taint{{Key: "virtual-kubelet.io/provider"}}
	for _, c := range []struct {
		name    string
		node    corev1.Node
		agent   bool
		rung    string
		virtual bool
		because string
	}{
		{name: "a kernel with sched_ext", node: node("n", nil, "6.18.1"), agent: true, rung: "scx", because: "if its kernel was built with sched_ext"},
		{name: "a kernel without", node: node("n", nil, "6.8.0-45-generic"), agent: true, rung: "cpu.idle", because: "its kernel is older than 6.12"},
		{name: "a version that is none", node: node("n", nil, "custom"), agent: true, because: "version custom cannot be understood"},
		{name: "another architecture", node: node("n", map[string]string{"kubernetes.io/arch": "arm64"}, "6.18.1"),
			because: "kubernetes.io/arch is arm64, and the agent is for amd64"},
		{name: "Windows, whose version looks new", node: node("n", map[string]string{"kubernetes.io/os": "windows"}, "10.0.20348.2582"), because: "kubernetes.io/os is windows"},
		{name: "no labels", node: corev1.Node{}, because: "kubernetes.io/arch is not there"},
		{name: "virtual by label", node: node("n", map[string]string{"type": "virtual-kubelet"}, ""), virtual: true, because: "by its label type=virtual-kubelet"},
		{name: "Fargate", node: node("n", map[string]string{"eks.amazonaws.com/compute-type": "fargate"}, "6.1.0"), virtual: true, because: "fargate"},
		{name: "virtual by taint", node: tainted, virtual: true, because: "by a taint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := seen(t).kindOf(&c.node)
			if got.Agent != c.agent || got.Rung != c.rung || got.Virtual != c.virtual || !strings.Contains(got.Because, c.because) {
				t.Errorf("got %+v, want %v, %q, %v, %q", got, c.agent, c.rung, c.virtual, c.because)
			}
		})
	}
}

// A cluster of 1,000 nodes is a line a kind.
func TestEqualNodesAreOneLine(t *testing.T) {
	c := seen(t)
	c.nodes = nil
	for i := range 1000 {
		kernel := "6.18.15"
		if i%100 == 0 {
			kernel = "5.15.0"
		}
		c.nodes = append(c.nodes, node(fmt.Sprintf("node-%03d", i), nil, kernel))
	}
	r := c.report()
	if len(r.Nodes) != 2 || r.Nodes[0].Count != 990 || r.Nodes[1].Count != 10 {
		t.Fatalf("%d groups", len(r.Nodes))
	}
	var short, long bytes.Buffer
	r.Write(&short, false)
	r.Write(&long, true)
	if lines := strings.Count(short.String(), "\n"); lines > 40 || strings.Contains(short.String(), "node-007") || !strings.Contains(long.String(), "node-007") {
		t.Errorf("%d lines, or names:\n%s", lines, short.String())
	}
}

func TestWebhooksThatSeeTheAgent(t *testing.T) {
	fail, ignore := admissionv1.Fail, admissionv1.Ignore
	pods := []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{"CREATE"}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}
	change := func(f func(*admissionv1.RuleWithOperations)) []admissionv1.RuleWithOperations {
		r := *pods[0].DeepCopy()
		f(&r)
		return []admissionv1.RuleWithOperations{r}
	}
	in := func(op metav1.LabelSelectorOperator, key string, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	for _, w := range []struct {
		name string
		hook admissionv1.ValidatingWebhook
		sees bool
	}{
		{"pods", admissionv1.ValidatingWebhook{Rules: pods, FailurePolicy: &fail}, true},
		{"no failurePolicy, which is Fail", admissionv1.ValidatingWebhook{Rules: pods}, true},
		{"Ignore", admissionv1.ValidatingWebhook{Rules: pods, FailurePolicy: &ignore}, false},
		{"all", admissionv1.ValidatingWebhook{Rules: change(func(r *admissionv1.RuleWithOperations) {
			r.Operations, r.APIGroups, r.APIVersions, r.Resources = []admissionv1.OperationType{"*"}, []string{"*"}, []string{"*"}, []string{"*/*"}
		})}, true},
		{"other resources", admissionv1.ValidatingWebhook{Rules: change(func(r *admissionv1.RuleWithOperations) { r.Resources = []string{"pods/eviction"} })}, false},
		{"deletions", admissionv1.ValidatingWebhook{Rules: change(func(r *admissionv1.RuleWithOperations) { r.Operations = []admissionv1.OperationType{"DELETE"} })}, false},
		{"no rules", admissionv1.ValidatingWebhook{}, false},
		{"another namespace", admissionv1.ValidatingWebhook{Rules: pods, NamespaceSelector: in("NotIn", "kubernetes.io/metadata.name", Namespace)}, false},
		{"labelled namespaces", admissionv1.ValidatingWebhook{Rules: pods, NamespaceSelector: in("Exists", "inject")}, false},
		{"labelled pods", admissionv1.ValidatingWebhook{Rules: pods, ObjectSelector: in("In", "app.kubernetes.io/name", "temper-agent")}, true},
		{"other pods", admissionv1.ValidatingWebhook{Rules: pods, ObjectSelector: in("In", "app", "web")}, false},
	} {
		w.hook.Name = "w"
		c := seen(t)
		c.validating = []admissionv1.ValidatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionv1.ValidatingWebhook{w.hook}}}
		if got := c.webhookFindings(); (got[0].Level == Warn) != w.sees {
			t.Errorf("%s: got %+v, want it to be seen: %v", w.name, got, w.sees)
		}
		c = seen(t)
		c.mutating = []admissionv1.MutatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionv1.MutatingWebhook{{Name: "w", Rules: w.hook.Rules,
			FailurePolicy: w.hook.FailurePolicy, NamespaceSelector: w.hook.NamespaceSelector, ObjectSelector: w.hook.ObjectSelector}}}}
		if got := c.webhookFindings(); (got[0].Level == Warn) != w.sees {
			t.Errorf("%s, of a mutating one: got %+v, want it to be seen: %v", w.name, got, w.sees)
		}
	}
	c := seen(t)
	c.validating = []admissionv1.ValidatingWebhookConfiguration{{Webhooks: []admissionv1.ValidatingWebhook{{Rules: pods, MatchConditions: []admissionv1.MatchCondition{{Name: "m"}}}}}}
	if got := c.webhookFindings(); !strings.Contains(got[0].Found, "unless its matchConditions leave them out") {
		t.Errorf("conditions: %+v", got)
	}
}

func TestPodsThatOthersDependOn(t *testing.T) {
	lease := func(namespace, holder string) func(*cluster) {
		return func(c *cluster) {
			c.leases = append(c.leases, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lock"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}})
		}
	}
	system := func(c *cluster) { // by a class that a rule has in background
		c.pods[0].Namespace, c.pods[0].Spec.PriorityClassName = "kube-public", "temper-background"
		c.namespaces["kube-public"] = nil
	}
	for _, row := range []struct {
		name   string
		change func(*cluster)
		wants  string
	}{
		{"a pod", func(*cluster) {}, ""},
		{"of a namespace of the system", system, "it is in namespace kube-public"},
		{"of it, with a label that says background", func(c *cluster) {
			system(c)
			c.pods[0].Labels = map[string]string{v1alpha1.TierLabel: "background"}
		}, ""},
		{"of it, which is labelled background", func(c *cluster) {
			system(c)
			c.namespaces["kube-public"] = labels.Set{v1alpha1.HighestTierLabel: "background"}
		}, ""},
		{"of it, on a node without an agent", func(c *cluster) {
			system(c)
			c.nodes[0].Labels["kubernetes.io/arch"] = "arm64"
		}, ""},
		{"of it, in critical", func(c *cluster) { system(c); c.pods[0].Spec.PriorityClassName = "system-cluster-critical" }, ""},
		{"of a DaemonSet", func(c *cluster) {
			c.pods[0].Spec.PriorityClassName = "temper-background"
			c.pods[0].OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "log", Controller: new(true)}}
		}, "it is of a DaemonSet"},
		{"one that leads", lease("shop", "web_0b0c"), "it leads, by Lease lock"},
		{"one that leads by its name alone", lease("shop", "web"), "it leads, by Lease lock"},
		{"a lease of another namespace", lease("other", "web_0b0c"), ""},
		{"a lease of another pod", lease("shop", "web-2_0b0c"), ""},
		{"a lease of nobody", func(c *cluster) {
			c.leases = []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}}
		}, ""},
		{"a webhook whose Service selects nobody", func(c *cluster) {
			c.services = []corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}}}
			c.validating = []admissionv1.ValidatingWebhookConfiguration{{Webhooks: []admissionv1.ValidatingWebhook{{ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "shop", Name: "s"}}}}}}
		}, ""},
	} {
		c := seen(t)
		row.change(c)
		if got := strings.Join(c.tiers(c.groups())[0].Depends, ", "); got != row.wants {
			t.Errorf("%s: got %q, want %q", row.name, got, row.wants)
		}
	}
}

func TestWorkload(t *testing.T) {
	yes := true
	own := func(kind, name, hash string) corev1.Pod {
		p := pod("web-5f6-abc")
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}}
		if hash != "" {
			p.Labels = map[string]string{"pod-template-hash": hash}
		}
		return p
	}
	for _, row := range []struct {
		pod  corev1.Pod
		want string
	}{
		{own("ReplicaSet", "web-5f6", "5f6"), "Deployment/shop/web"},
		{own("StatefulSet", "web-5f6", "5f6"), "StatefulSet/shop/web-5f6"},
		{own("ReplicaSet", "web-5f6", ""), "ReplicaSet/shop/web-5f6"},
		{own("DaemonSet", "log", ""), "DaemonSet/shop/log"},
		{own("Node", "node-7", ""), "Pod/shop/web-5f6-abc"},
		{pod("bare"), "Pod/shop/bare"},
	} {
		if got := workload(&row.pod); got != row.want {
			t.Errorf("got %s, want %s", got, row.want)
		}
	}
}

// What is not known is named with its cure, and nothing that rests on it is said to be well.
func TestWhatIsHiddenIsNeverFine(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
	if v := seen(t).report().Verdict; v != Ready {
		t.Fatalf("where all is known: %s", v)
	}
	for _, row := range []struct {
		hidden string
		silent []string // findings that are not there
	}{
		{"version", []string{"api-server"}},
		{"nodes", []string{"nodes", "background"}},
		{"pods", []string{"background"}},
		{"tierpolicies", []string{"background"}},
		{"namespaces", []string{"pod-security", "webhook", "background"}},
		{"resourcequotas", []string{"quota"}},
		{"limitranges", []string{"quota", "limit-range"}},
		{"mutatingwebhookconfigurations", []string{"webhook", "background"}},
		{"validatingwebhookconfigurations", []string{"webhook", "background"}},
		{"services", []string{"background"}},
		{"apiservices", []string{"background"}},
		{"customresourcedefinitions", []string{"background"}},
		{"leases", []string{"background"}},
		{"daemonsets", []string{"neighbours"}},
		{"clusterrole temper-agent", []string{"objects"}},
	} {
		for _, fault := range []struct {
			err  error
			cure string
		}{{forbidden, "ask as somebody who may "}, {context.DeadlineExceeded, "--request-timeout"}} {
			c := seen(t)
			c.hidden[row.hidden] = fault.err
			r := c.report()
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Name == row.hidden && f.Level == Unknown })
			if i < 0 || !strings.Contains(r.Findings[i].Cure, fault.cure) || r.Verdict != NotKnown {
				t.Errorf("%s, %v: %s, %+v", row.hidden, fault.err, r.Verdict, r.Findings)
			}
			for _, f := range r.Findings {
				if slices.Contains(row.silent, f.Name) && f.Level != Unknown {
					t.Errorf("%s: it cannot be known that %+v", row.hidden, f)
				}
			}
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, row := range []struct {
		levels []Level
		want   Verdict
		status bool
	}{
		{nil, Ready, true}, {[]Level{OK, Warn}, Ready, true}, {[]Level{OK, Unknown}, NotKnown, false}, {[]Level{Unknown, Fail}, Blocked, false},
	} {
		var findings []Finding
		for _, l := range row.levels {
			findings = append(findings, Finding{Level: l})
		}
		if got := verdict(findings); got != row.want || (got.Err() == nil) != row.status {
			t.Errorf("%v: got %s, %v, want %s", row.levels, got, got.Err(), row.want)
		}
	}
}

func TestServers(t *testing.T) {
	for _, row := range []struct {
		version  string
		unserved []string
		fails    bool
	}{
		{"v1.36.3", nil, false}, {"v1.30.0-eks-1552ad0", nil, false}, {"v1.29.9-gke.100", nil, true}, {"v1.36.3", []string{"ValidatingAdmissionPolicy of v1"}, true}, {"odd", nil, false},
	} {
		c := seen(t)
		c.version, c.unserved = row.version, row.unserved
		if got := c.serverFindings(); (got[0].Level == Fail) != row.fails {
			t.Errorf("%s, without %v: got %+v, want it to fail: %v", row.version, row.unserved, got, row.fails)
		}
	}
	chart, err := os.ReadFile("../../../charts/temper/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := `kubeVersion: ">=` + oldest + `.0-0"`; !strings.Contains(string(chart), want) {
		t.Errorf("the chart does not have %s", want)
	}
}
