//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
)

// A node of fixtures: its cgroups are directories, and there is no kernel in it that a scheduler could be attached to, so
// that the agent stays on the rung cpu.idle. Everything else is real.
type node struct {
	t    *testing.T
	name string
	root host.Root
	cmd  *exec.Cmd
	said *os.File
}

// newNode makes one, in the cluster too, with an agent.
func newNode(t *testing.T, labels map[string]string) *node {
	t.Helper()
	n := &node{t: t, name: "node-" + strings.ToLower(t.Name()), root: fixture.Tree(t, "/kubepods", "/kubepods/burstable", "/kubepods/besteffort")}
	create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels}})
	var err error
	if n.said, err = os.Create(filepath.Join(t.TempDir(), "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.end(syscall.SIGTERM)
		if t.Failed() {
			text, _ := os.ReadFile(n.said.Name())
			t.Logf("the agent said:\n%s", text)
		}
		object := &v1alpha1.TemperNode{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
		if err := cluster.Delete(context.Background(), object); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	n.start(asAgent(t, n.name))
	return n
}

// asAgent is a kubeconfig for the agent of a node: with its service account, and what the token of its pod would say.
func asAgent(t *testing.T, node string) []byte {
	t.Helper()
	config, err := clientcmd.Load(server.KubeConfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:temper-system:temper-agent"
		user.ImpersonateUserExtra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// unanswered is asAgent for an API server that is not there.
func unanswered(t *testing.T, node string) []byte {
	t.Helper()
	return regexp.MustCompile(`server: .*`).ReplaceAll(asAgent(t, node), []byte("server: https://127.0.0.1:1"))
}

// start starts an agent. The path that it is given for scx_temper does not exist: on a host whose kernel could, it
// would attach to that.
func (n *node) start(kubeconfig []byte, args ...string) {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		n.t.Fatal(err)
	}
	args = append([]string{"--node", n.name, "--kubeconfig", file, "--host-root", string(n.root),
		"--config", filepath.Join(string(n.root), "none"), "--loader", filepath.Join(string(n.root), "none")}, args...)
	n.cmd = exec.Command(root+"/bin/temper-agent", args...)
	n.cmd.Stderr = n.said
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) end(signal os.Signal) {
	if n.cmd != nil {
		n.cmd.Process.Signal(signal)
		n.cmd.Wait()
		n.cmd = nil
	}
}

// What keeps a node or the cluster going is in background only if somebody says so.
func TestAgentKeepsPodsOfTheSystemOutOfBackground(t *testing.T) {
	n := newNode(t, nil)
	run := func(namespace, name, class, kind string) {
		pod := bind(t, podOf(namespace, name, class), n.name)
		if kind != "" {
			owned(pod, kind, "o")
		}
		create(t, pod)
		fixture.Cgroup(t, n.root, fmt.Sprintf("/kubepods/besteffort/pod%s", pod.UID))
	}
	run("home", "of-daemonset", "", "DaemonSet")
	run("home", "of-replicaset", "", "ReplicaSet")
	run("home", "of-daemonset-low", "temper-background", "DaemonSet")
	run("kube-system", "of-system", "", "ReplicaSet")
	eventually(t, "the pods are in their tiers", func() bool {
		return slices.Equal(n.pods("standard"), []string{"home/of-daemonset", "kube-system/of-system"}) &&
			slices.Equal(n.pods("background"), []string{"home/of-daemonset-low", "home/of-replicaset"})
	})
	// And 'explain' agrees with the agent.
	out, errs, _ := kubectlTemper(t, server.KubeConfig, "explain", "-n", "home", "of-daemonset", "of-daemonset-low")
	for _, want := range []string{`of-daemonset +standard +default +- +of a DaemonSet, so not background \(QoS class BestEffort\)`, `of-daemonset-low +background +default +background +PriorityClass`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("explain: no %s in\n%s%s", want, out, errs)
		}
	}
}

// run makes a pod that runs on the node, and its cgroup.
func (n *node) run(name, class, parent string) (*corev1.Pod, string) {
	n.t.Helper()
	pod := bind(n.t, podOf("home", name, class), n.name)
	if strings.HasSuffix(parent, "burstable") {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	}
	create(n.t, pod)
	cg := fmt.Sprintf("%s/pod%s", parent, pod.UID)
	fixture.Cgroup(n.t, n.root, cg)
	return pod, cg
}

func (n *node) idle(cg string) string {
	n.t.Helper()
	return fixture.Read(n.t, n.root, "/sys/fs/cgroup"+cg+"/cpu.idle")
}

// status is what the API server says of the node.
func (n *node) status() v1alpha1.TemperNodeStatus {
	n.t.Helper()
	var object v1alpha1.TemperNode
	if err := cluster.Get(n.t.Context(), client.ObjectKey{Name: n.name}, &object); err != nil && !apierrors.IsNotFound(err) {
		n.t.Fatal(err)
	}
	return object.Status
}

// condition is one's status and reason.
func (n *node) condition(name string) string {
	n.t.Helper()
	c := meta.FindStatusCondition(n.status().Conditions, name)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func (n *node) pods(tier v1alpha1.Tier) []string {
	n.t.Helper()
	for _, t := range n.status().Tiers {
		if t.Tier == tier {
			return t.Pods
		}
	}
	return nil
}

func (n *node) awaitCondition(name, want string) {
	n.t.Helper()
	eventually(n.t, name+" is "+want, func() bool { return n.condition(name) == want })
}

func TestAgentGivesPodsTheirTiers(t *testing.T) {
	n := newNode(t, nil)
	eventually(t, "the node has fallen to cpu.idle, as there is no scheduler", func() bool { return n.status().Rung == "cpu.idle" })
	if s := n.status(); s.Policy != "default" || s.KernelVersion == "" || n.condition(v1alpha1.ConditionEnforced) != "False Failed" {
		t.Errorf("%+v", s)
	}
	_, web := n.run("web", "temper-critical", "/kubepods/burstable")
	batch, batchCgroup := n.run("batch", "", "/kubepods/besteffort")
	plain, plainCgroup := n.run("plain", "", "/kubepods/burstable")
	eventually(t, "the pods are in their tiers", func() bool {
		return slices.Equal(n.pods("critical"), []string{"home/web"}) && slices.Equal(n.pods("background"), []string{"home/batch"}) &&
			slices.Equal(n.pods("standard"), []string{"home/plain"})
	})
	if n.idle(web) != "0" || n.idle(batchCgroup) != "1" || n.idle(plainCgroup) != "0" || n.idle("/kubepods/besteffort") != "0" {
		t.Error("cpu.idle is not what the tiers say")
	}

	var report v1alpha1.TemperNode
	if err := cluster.Get(t.Context(), client.ObjectKey{Name: n.name}, &report); err != nil || !slices.ContainsFunc(report.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "status" && f.Time != nil
	}) {
		t.Errorf("%v, %+v: want when the API server took the report", err, report.ManagedFields)
	}
	out, errs, status := kubectlTemper(t, server.KubeConfig, "status")
	if line := regexp.MustCompile(`(?m)^` + n.name + ` +cpu.idle +no \(Failed\) +default +1 +1 +0 +\S+ ago$`); status != 0 || !line.MatchString(out) {
		t.Errorf("status %d: %s%s", status, out, errs)
	}

	if out, errs, _ := kubectlTemper(t, server.KubeConfig, "explain", "-n", "home", "web"); !strings.Contains(out, "PriorityClass temper-critical  paced (policy)  no (Failed)") {
		t.Errorf("explain says\n%s%s", out, errs)
	}

	plain.Labels = map[string]string{v1alpha1.TierLabel: "background"}
	if err := cluster.Update(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the label lowers the running pod", func() bool { return n.idle(plainCgroup) == "1" })

	// A pod that is not known has no tier of its own, and gets one once it is.
	static := bind(t, podOf("home", "static", "temper-critical"), n.name)
	hash := strings.Repeat("5d41402a", 4)
	fixture.Cgroup(t, n.root, "/kubepods/besteffort/pod"+hash)
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: hash, "kubernetes.io/config.hash": hash}
	create(t, static)
	eventually(t, "the static pod is critical", func() bool { return slices.Contains(n.pods("critical"), "home/static") })

	// Who may create pods cannot speak for another's: neither for a static pod's nor for one with a UID.
	lower := bind(t, podOf("default", "lower", ""), n.name)
	lower.Annotations = static.Annotations
	lower.Labels = map[string]string{v1alpha1.TierLabel: "background"}
	create(t, lower)
	eventually(t, "the claim is told", func() bool {
		return strings.Contains(strings.Join(n.state().Problems, "\n"), "default/lower says that it is "+hash)
	})
	if got := n.state().Members; !slices.ContainsFunc(got, func(m agent.Member) bool { return m.Pod == "home/static" && m.Tier == tier.Critical }) {
		t.Errorf("%+v", got)
	}
	spoof := bind(t, podOf("default", "spoof", ""), n.name)
	spoof.Labels = map[string]string{v1alpha1.TierLabel: "standard"}
	spoof.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x", "kubernetes.io/config.hash": string(batch.UID)}
	create(t, spoof)
	eventually(t, "the spoof is told", func() bool {
		return strings.Contains(strings.Join(n.status().Problems, "\n"), "2 pods claim others' cgroups: pod default/lower says that it is")
	})
	if n.idle(batchCgroup) != "1" {
		t.Error("another pod's annotation has taken a pod out of background")
	}

	os.RemoveAll(n.root.Cgroup(batchCgroup))
	eventually(t, "the pod that ended is gone", func() bool { return !slices.Contains(n.pods("background"), "home/batch") })
	n.end(syscall.SIGTERM)
	n.awaitCondition(v1alpha1.ConditionEnforced, "False Stopped")
	if n.idle(plainCgroup) != "0" {
		t.Error("the agent has left cpu.idle behind")
	}
}

func TestAPodsOwnLimits(t *testing.T) {
	n := newNode(t, nil)
	labelled := func(name, limits string) {
		t.Helper()
		pod := bind(t, podOf("home", name, ""), n.name)
		pod.Labels = map[string]string{v1alpha1.LimitsLabel: limits}
		create(t, pod)
		fixture.Cgroup(t, n.root, "/kubepods/besteffort/pod"+string(pod.UID))
	}
	labelled("frozen", "freeze")
	labelled("greedy", "gap")
	await := func(what, greedy string) {
		t.Helper()
		eventually(t, what, func() bool {
			modes := map[string]string{}
			for _, m := range n.state().Members {
				modes[m.Pod] = m.Limits
			}
			own, there := modes["home/greedy"]
			return there && own == greedy && modes["home/frozen"] == "freeze"
		})
	}
	await("freeze is granted, and gap is not", "")
	out, errs, status := kubectlTemper(t, server.KubeConfig, "explain", "-n", "home", "frozen", "greedy")
	for _, want := range []string{"freeze (label temper.dev/limits)", "paced (policy)",
		"Pod/home/greedy: label temper.dev/limits asks for gap, which podLimits of policy default does not list"} {
		if !strings.Contains(out, want) || status != 0 {
			t.Errorf("explain says no %q, with status %d:\n%s%s", want, status, out, errs)
		}
	}
	changeDefaultPolicy(t, func(p *v1alpha1.TierPolicySpec) { p.PodLimits = []string{"gap", "freeze"} })
	await("a policy that grants it takes effect on running pods", "gap")
}

// What is reserved follows the policy, and pods as they come, go and change their tier.
func TestReservationFollowsPods(t *testing.T) {
	n := newNode(t, nil)
	reserved := func(what string, want int64) {
		t.Helper()
		eventually(t, what, func() bool { r := n.state().Reserved; return r != nil && *r == want })
	}
	request := func(name, class, cpu string) *corev1.Pod {
		t.Helper()
		pod := bind(t, podOf("home", name, class), n.name)
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		create(t, pod)
		return pod
	}
	reserved("nothing is, where there are no pods", 0)
	web := request("web", "temper-critical", "500m")
	request("plain", "", "4")
	lowered := request("db", "temper-critical", "1250m")
	reserved("what critical pods request", 1750)
	out, errs, status := kubectlTemper(t, server.KubeConfig, "explain", "-n", "home", "web")
	if want := "Pod/home/web: requests 500m; no reservation is known to be in force on its node"; status != 0 || !strings.Contains(out, want) {
		t.Errorf("explain says no %q, with status %d:\n%s%s", want, status, out, errs)
	}

	lowered.Labels = map[string]string{v1alpha1.TierLabel: "standard"}
	if err := cluster.Update(t.Context(), lowered); err != nil {
		t.Fatal(err)
	}
	reserved("without the one that is standard now", 500)
	changeDefaultPolicy(t, func(p *v1alpha1.TierPolicySpec) { p.ReservationPercent = new(int32(200)) })
	reserved("by the per cent of the policy", 1000)

	eventually(t, "it is kept for the next agent", func() bool {
		kept, err := os.ReadFile(n.root.Run("cluster.json"))
		return err == nil && strings.Contains(string(kept), `"reservation_percent": 200`)
	})
	n.end(syscall.SIGKILL)
	n.start(unanswered(t, n.name))
	eventually(t, "the next agent is there", func() bool { return n.state().PID == n.cmd.Process.Pid })
	reserved("what an earlier agent knew", 1000)

	n.end(syscall.SIGKILL)
	n.start(asAgent(t, n.name))
	web.Status.Phase = corev1.PodSucceeded
	if err := cluster.Status().Update(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	reserved("without the one that has ended", 0)
}

func TestSafeModeOfANode(t *testing.T) {
	n := newNode(t, nil)
	_, batch := n.run("batch", "", "/kubepods/besteffort")
	eventually(t, "the pod is in background", func() bool { return n.idle(batch) == "1" })
	safeMode := func(onOff string) {
		t.Helper()
		if _, errs, status := kubectlTemper(t, server.KubeConfig, "safe-mode", n.name, onOff); status != 0 {
			t.Fatal(errs)
		}
	}
	safeMode("on")
	n.awaitCondition(v1alpha1.ConditionSafeMode, "True SafeModeNode")
	if n.idle(batch) != "0" || n.condition(v1alpha1.ConditionEnforced) != "False SafeModeNode" {
		t.Errorf("cpu.idle %s, status %+v", n.idle(batch), n.status())
	}
	if out, _, _ := kubectlTemper(t, server.KubeConfig, "status", n.name); !strings.Contains(out, "safe mode: node "+n.name+" has the label") {
		t.Errorf("status says\n%s", out)
	}
	n.end(syscall.SIGKILL)
	fixture.Write(t, n.root, "/sys/fs/cgroup"+batch+"/cpu.idle", "0")
	n.start(asAgent(t, n.name))
	eventually(t, "safe mode outlasts the agent", func() bool { return n.state().PID == n.cmd.Process.Pid && n.state().Off != nil })
	safeMode("off")
	eventually(t, "the pod is in background again", func() bool { return n.idle(batch) == "1" })
	n.awaitCondition(v1alpha1.ConditionSafeMode, "False NotAsked")

	n.end(syscall.SIGKILL)
	safeMode("on")
	began := time.Now()
	n.start(asAgent(t, n.name))
	eventually(t, "the next agent has heard what was asked while none was there", func() bool { return n.state().PID == n.cmd.Process.Pid && n.state().Off != nil })
	for _, e := range n.state().Exits {
		if e.Time.After(began) {
			t.Errorf("it has tried to attach: %+v", e)
		}
	}
	safeMode("off")
	n.awaitCondition(v1alpha1.ConditionSafeMode, "False NotAsked")

	fixture.Write(t, n.root, agent.SafeModeFile, "by hand\n")
	n.awaitCondition(v1alpha1.ConditionSafeMode, "True SafeModeFile")
	n.end(syscall.SIGKILL)
	n.start(asAgent(t, n.name))
	eventually(t, "the next agent is there", func() bool { return n.state().PID == n.cmd.Process.Pid && n.state().Off != nil })
	if n.idle(batch) != "0" {
		t.Error("safe mode did not outlast the agent")
	}
}

// state is the agent's own word, which needs no API server.
func (n *node) state() agent.State {
	n.t.Helper()
	s, err := agent.ReadState(n.root)
	if err != nil {
		return agent.State{}
	}
	return *s
}

func TestANodeThatIsTooSmall(t *testing.T) {
	n := newNode(t, nil)
	n.awaitCondition(v1alpha1.ConditionSized, "Unknown CoresUnknown")
	for cpu := range 4 { // of two threads each
		fixture.Write(t, n.root, fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu), fmt.Sprintf("%d,%d", cpu%2, cpu%2+2))
	}
	pod := bind(t, podOf("home", "large", "temper-critical"), n.name)
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1001m")}
	create(t, pod)
	n.awaitCondition(v1alpha1.ConditionSized, "False TooMuchCritical")
	eventually(t, "the node has an event of it", func() bool {
		var events corev1.EventList
		if err := cluster.List(t.Context(), &events, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.Name == n.name && e.Reason == "SizedFalse" && strings.Contains(e.Message, "critical pods request 1.001 CPUs, and 2 cores but one have room for 1")
		})
	})
}

func TestANodeThatNoPolicySelects(t *testing.T) {
	changeDefaultPolicy(t, func(p *v1alpha1.TierPolicySpec) {
		p.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "temper", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"off"}}}}
	})
	n := newNode(t, map[string]string{"temper": "off"})
	n.awaitCondition(v1alpha1.ConditionEnforced, "False NoPolicy")
	_, batch := n.run("batch", "temper-background", "/kubepods/besteffort")
	eventually(t, "the pod is seen", func() bool { return len(n.state().Members) == 1 })
	if n.idle(batch) != "0" {
		t.Error("a node without a policy is not left alone")
	}
}

func TestANodeThatIsNoNode(t *testing.T) {
	n := newNode(t, nil)
	_, batch := n.run("batch-of-nobody", "", "/kubepods/besteffort")
	eventually(t, "the pod is in background", func() bool { return n.idle(batch) == "1" })
	gone := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	if err := cluster.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is left alone", func() bool { return n.state().Off != nil && n.state().Off.Reason == agent.NoNode })
	if n.idle(batch) != "0" {
		t.Error("cpu.idle is left")
	}
	if err := cluster.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is in background again", func() bool { return n.idle(batch) == "1" })
}

func TestAnAgentWritesItsOwnNodeAlone(t *testing.T) {
	kubeconfig := asAgent(t, "mine")
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	nodeOf := func(name string) *v1alpha1.TemperNode {
		return &v1alpha1.TemperNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	eventually(t, "another node's is refused", func() bool {
		err := agent.Create(t.Context(), nodeOf("other"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "the agent of node 'mine' may write no other node's TemperNode, such as other")
	})
	// Nor is it of agents in another namespace, where an overlay may have put them.
	if err := apply("testdata/elsewhere.yaml"); err != nil {
		t.Fatal(err)
	}
	config.Impersonate.UserName = "system:serviceaccount:elsewhere:temper-agent"
	elsewhere, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "another node's is refused to agents of another namespace", func() bool {
		err := elsewhere.Create(t.Context(), nodeOf("other"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "the agent of node 'mine' may write no other node's TemperNode, such as other")
	})
	if err := elsewhere.Create(t.Context(), nodeOf("mine"), client.DryRunAll); err != nil {
		t.Errorf("its own node's, in another namespace: %v", err)
	}
	mine, other := nodeOf("mine"), nodeOf("other")
	if err := agent.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Delete(context.Background(), mine) })
	create(t, other)
	mine.Status.Rung, other.Status.Rung = "observe", "scx"
	if err := agent.Status().Update(t.Context(), mine); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"another's status": agent.Status().Update(t.Context(), other),
		"a node's labels":  agent.Update(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}),
		"a policy":         agent.Delete(t.Context(), &v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}}),
		"a TemperNode":     agent.Delete(t.Context(), mine),
		"a secret":         agent.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "x"}, &corev1.Secret{}),
	} {
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// freePort is one of an address of this host.
func freePort(t *testing.T, ip string) *net.TCPAddr {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr)
}

// What the agent serves to Prometheus is of the pods that run.
func TestMetricsOfPods(t *testing.T) {
	n := newNode(t, nil)
	n.end(syscall.SIGTERM)
	address := freePort(t, "127.0.0.1").String()
	n.start(asAgent(t, n.name), "--metrics", address)
	_, batch := n.run("batch", "", "/kubepods/besteffort")
	fixture.Write(t, n.root, "/sys/fs/cgroup"+batch+"/cpu.stat", "usage_usec 2500000\n")
	scrape := func() string {
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	const series = `temper_pod_cpu_seconds_total{namespace="home",pod="batch",tier="background"} 2.5`
	eventually(t, "the pod has its series, beside the node's", func() bool {
		text := scrape()
		return strings.Contains(text, series) && strings.Contains(text, `temper_rung{rung="cpu.idle"} 1`)
	})
	if text := scrape(); strings.Contains(text, "temper_off{") {
		t.Error(text)
	}
}
