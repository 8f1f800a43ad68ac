//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/explain"
	"temper.dev/temper/internal/cluster/preflight"
)

// bareCluster is one without Temper.
func bareCluster(t *testing.T) (*envtest.Environment, client.Client) {
	t.Helper()
	bare := apiServer()
	config, err := bare.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bare.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: explain.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return bare, c
}

// nodeWith makes a node that says this of itself.
func nodeWith(t *testing.T, c client.Client, name string, labels map[string]string, info corev1.NodeSystemInfo) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	must(t, c.Create(t.Context(), node))
	node.Status.NodeInfo = info
	must(t, c.Status().Update(t.Context(), node))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// owned is a pod of a workload.
func owned(pod *corev1.Pod, kind, name string) *corev1.Pod {
	yes := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: &yes}}
	return pod
}

func labelled(pod *corev1.Pod, labels map[string]string) *corev1.Pod {
	pod.Labels = labels
	return pod
}

// findings are of a report, as name and level.
func findings(r preflight.Report, level preflight.Level) (names []string) {
	for _, f := range r.Findings {
		if f.Level == level {
			names = append(names, f.Name)
		}
	}
	return names
}

func report(t *testing.T, kubeconfig []byte, status int, args ...string) (r preflight.Report) {
	t.Helper()
	out, errs, code := kubectlTemper(t, kubeconfig, append([]string{"preflight", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != status {
		t.Fatalf("preflight %v: status %d, want %d; %v: %s", args, code, status, err, errs)
	}
	return r
}

func TestPreflightOfAClusterWithoutTemper(t *testing.T) {
	bare, c := bareCluster(t)
	if r := report(t, bare.KubeConfig, 1); r.Verdict != preflight.Blocked || !slices.Contains(findings(r, preflight.Fail), "nodes") {
		t.Errorf("a cluster without nodes: %+v", r.Findings)
	}
	list, err := objects("testdata/preflight.yaml")
	must(t, err)
	for _, object := range list {
		must(t, c.Create(t.Context(), object))
	}
	linux := map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	with := func(label, value string) map[string]string {
		return map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", label: value}
	}
	new := corev1.NodeSystemInfo{KernelVersion: "6.18.15+deb13-cloud-amd64", Architecture: "amd64", OperatingSystem: "linux", OSImage: "Debian GNU/Linux 13 (trixie)", ContainerRuntimeVersion: "containerd://2.1.4", KubeletVersion: "v1.36.3"}
	old, arm := new, new
	old.KernelVersion, old.OSImage, old.KubeletVersion = "5.10.0-32-amd64", "Debian GNU/Linux 11 (bullseye)", "v1.29.9-gke.100"
	arm.Architecture = "arm64"
	for i := range 3 {
		nodeWith(t, c, fmt.Sprintf("new-%d", i), linux, new)
	}
	nodeWith(t, c, "old", linux, old)
	nodeWith(t, c, "arm", with("kubernetes.io/arch", "arm64"), arm)
	nodeWith(t, c, "windows", with("kubernetes.io/os", "windows"), corev1.NodeSystemInfo{KernelVersion: "10.0.20348.2582", Architecture: "amd64", OperatingSystem: "windows",
		OSImage: "Windows Server 2022 Datacenter", ContainerRuntimeVersion: "containerd://1.7.20", KubeletVersion: "v1.36.3"})
	nodeWith(t, c, "cloud", with("type", "virtual-kubelet"), corev1.NodeSystemInfo{KubeletVersion: "v1.19.10-vk"})
	requests := podOf("shop", "web-7d4b9c-x2x8z", "")
	requests.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	ended := bind(t, podOf("shop", "ended", ""), "new-0")
	for _, pod := range []*corev1.Pod{
		bind(t, owned(labelled(podOf("ops", "guard-5f6-abc", ""), map[string]string{"app": "guard", "pod-template-hash": "5f6"}), "ReplicaSet", "guard-5f6"), "new-0"),
		bind(t, owned(podOf("ops", "log-1", "temper-background"), "DaemonSet", "log"), "new-0"),
		bind(t, owned(podOf("ops", "log-2", "temper-background"), "DaemonSet", "log"), "new-1"),
		bind(t, podOf("kube-system", "dns", ""), "new-1"),
		bind(t, podOf("kube-system", "proxy", "system-node-critical"), "new-1"),
		bind(t, owned(podOf("shop", "operator-x7k", ""), "StatefulSet", "operator"), "new-1"),
		bind(t, labelled(podOf("kube-system", "report", ""), map[string]string{"temper.dev/tier": "background"}), "new-1"),
		bind(t, owned(requests, "ReplicaSet", "web-7d4b9c"), "new-2"),
		bind(t, owned(podOf("ops", "log-3", ""), "DaemonSet", "log"), "windows"),
		podOf("shop", "batch", ""),
		ended,
	} {
		must(t, c.Create(t.Context(), pod))
	}
	ended.Status.Phase = corev1.PodSucceeded
	must(t, c.Status().Update(t.Context(), ended))

	out, errs, status := kubectlTemper(t, bare.KubeConfig, "preflight", "--all")
	if status != 1 || !strings.Contains(errs, "something is in the way of Temper; cure what fails above, and ask again") {
		t.Errorf("status %d: %s", status, errs)
	}
	fixture.Golden(t, "preflight.txt", out)

	r := report(t, bare.KubeConfig, 1)
	if len(r.Nodes) != 5 || r.Nodes[0].Count != 3 || r.Nodes[0].Rung != "scx" || !slices.Equal(r.Nodes[0].Names, []string{"new-0", "new-1", "new-2"}) {
		t.Errorf("nodes: %+v", r.Nodes)
	}
	if i := slices.IndexFunc(r.Pods, func(p preflight.Pod) bool { return p.Name == "Pod/shop/batch" }); i < 0 || r.Pods[i].Tier != tier.Background || r.Pods[i].Depends != nil {
		t.Errorf("pods: %+v", r.Pods)
	}
	t.Run("somebody who may read nothing", func(t *testing.T) { nobodyIsTold(t, bare.KubeConfig) })
	t.Run("what refuses the agent", func(t *testing.T) { namespaceIsAsTheServerSays(t, bare.KubeConfig, c) })
}

// What may not be read is named, and never fine.
func nobodyIsTold(t *testing.T, kubeconfig []byte) {
	r := report(t, impersonate(t, kubeconfig, "nobody", "system:authenticated"), 1)
	if r.Verdict != preflight.NotKnown || len(r.Pods) != 0 || len(findings(r, preflight.Fail)) != 0 {
		t.Errorf("verdict %s of %d pods: %+v", r.Verdict, len(r.Pods), r.Findings)
	}
	unknown := findings(r, preflight.Unknown)
	for _, want := range []string{"nodes", "namespaces", "pods", "services", "resourcequotas", "limitranges", "validatingwebhookconfigurations", "mutatingwebhookconfigurations",
		"apiservices", "customresourcedefinitions", "leases", "daemonsets", "clusterrole temper-agent"} {
		if !slices.Contains(unknown, want) {
			t.Errorf("%s is not told as unknown: %v", want, unknown)
		}
	}
	if fine := findings(r, preflight.OK); !slices.Equal(fine, []string{"api-server"}) {
		t.Errorf("said to be fine: %v", fine)
	}
}

// What is said of a namespace is what the API server does there to the agent's pod.
func namespaceIsAsTheServerSays(t *testing.T, kubeconfig []byte, c client.Client) {
	set := &appsv1.DaemonSet{}
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(shipped(t, "agent.yaml", "DaemonSet")[0].Object, set))
	cpu := func(q string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}
	}
	limit := func(item corev1.LimitRangeItem) client.Object {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
	}
	quota := func(hard corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) client.Object {
		return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes}, Status: corev1.ResourceQuotaStatus{Hard: hard}}
	}
	pods := func(n string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(n)}
	}
	limits := corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse("10")}
	for i, row := range []struct {
		what    string
		level   string
		objects []client.Object
		fails   string // the finding; "": none
	}{
		{"privileged", "privileged", nil, ""},
		{"no label", "", nil, ""},
		{"baseline", "baseline", nil, "pod-security"},
		{"restricted", "restricted", nil, "pod-security"},
		{"a LimitRange with a higher minimum", "privileged", []client.Object{limit(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: cpu("50m")})}, "limit-range"},
		{"a LimitRange with a lower minimum", "privileged", []client.Object{limit(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: cpu("1m"), Default: cpu("1")})}, ""},
		{"a LimitRange with a maximum, and no default", "privileged", []client.Object{limit(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: cpu("1")})}, "limit-range"},
		{"a quota on limits that the pod lacks", "privileged", []client.Object{quota(limits)}, "quota"},
		{"that quota, and a LimitRange that gives the limit", "privileged", []client.Object{quota(limits), limit(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: cpu("1")})}, ""},
		{"a quota of no pod", "privileged", []client.Object{quota(pods("0"))}, "quota"},
		{"a quota with room", "privileged", []client.Object{quota(pods("100"))}, ""},
		{"a quota for other pods", "privileged", []client.Object{quota(pods("0"), corev1.ResourceQuotaScopeBestEffort)}, ""},
	} {
		t.Run(row.what, func(t *testing.T) {
			name := fmt.Sprintf("preflight-%d", i)
			labels := map[string]string{}
			if row.level != "" {
				labels["pod-security.kubernetes.io/enforce"] = row.level
			}
			must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
			for _, o := range row.objects {
				o.SetNamespace(name)
				used := o.DeepCopyObject()
				must(t, c.Create(t.Context(), o))
				if q, ok := o.(*corev1.ResourceQuota); ok { // no controller is there to say that it is in force
					q.Status = used.(*corev1.ResourceQuota).Status
					q.Status.Used = corev1.ResourceList{}
					for r := range q.Status.Hard {
						q.Status.Used[r] = resource.MustParse("0")
					}
					must(t, c.Status().Update(t.Context(), q))
				}
			}
			var failing []string
			out, _, _ := kubectlTemper(t, kubeconfig, "preflight", "--json", "-n", name)
			var r preflight.Report
			must(t, json.Unmarshal([]byte(out), &r))
			for _, f := range findings(r, preflight.Fail) {
				if f == "pod-security" || f == "limit-range" || f == "quota" {
					failing = append(failing, f)
				}
			}
			if got := strings.Join(failing, " "); got != row.fails {
				t.Errorf("got %q, want %q: %+v", got, row.fails, r.Findings)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "agent", Labels: set.Spec.Template.Labels}, Spec: set.Spec.Template.Spec}
			eventually(t, "the API server knows the namespace as it is", func() bool {
				err := c.Create(t.Context(), pod.DeepCopy(), client.DryRunAll)
				return (err != nil) == (row.fails != "")
			})
		})
	}
}

func TestPreflightSaysWhatIsWrong(t *testing.T) {
	saysWhatIsWrong(t, []string{"preflight"}, []wrongUse{
		{"an argument", server.KubeConfig, []string{"node-7"}, 2, `"node-7" is one argument too many`},
		{"no cluster", nil, nil, 9, "no kubeconfig names a cluster"},
	})
	// Somebody who takes the connection, and says nothing.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	config := regexp.MustCompile(`server: .*`).ReplaceAll(server.KubeConfig, []byte("server: https://"+silent.Addr().String()))
	if _, errs, status := kubectlTemper(t, config, "preflight", "--request-timeout", "1s"); status != 1 || !strings.Contains(errs, "the cluster does not answer: ") {
		t.Errorf("a cluster that is silent: status %d: %s", status, errs)
	}
}

// Where Temper is, it says so; its own policies count.
func TestPreflightOfAClusterWithTemper(t *testing.T) {
	r := report(t, server.KubeConfig, 1)
	i := slices.IndexFunc(r.Findings, func(f preflight.Finding) bool {
		return strings.Contains(f.Found, "made without Helm: ") && strings.Contains(f.Found, "TierPolicy default")
	})
	if i < 0 {
		t.Errorf("%+v", r.Findings)
	}
}
