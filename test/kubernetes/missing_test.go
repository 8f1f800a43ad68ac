//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"temper.dev/temper/internal/cluster/fleet"
)

// asUser is a kubeconfig for somebody with the rights of these groups.
func asUser(t *testing.T, name string, groups ...string) []byte {
	t.Helper()
	return impersonate(t, server.KubeConfig, name, groups...)
}

// impersonate is a kubeconfig of the same cluster for somebody with the rights of these groups.
func impersonate(t *testing.T, kubeconfig []byte, name string, groups ...string) []byte {
	t.Helper()
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = name, groups
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A node that a policy selects is listed, whether its agent reports or not.
func TestNodesWithoutAnAgent(t *testing.T) {
	n := newNode(t, nil)
	eventually(t, "the node is reported", func() bool { return n.status().Rung == "cpu.idle" })
	const bare, pending = "node-without-an-agent", "node-without-an-image"
	for _, name := range []string{bare, pending} {
		create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}}})
	}
	agents(t, "temper-system", map[string]string{"kubernetes.io/arch": "amd64"})
	pod := bind(t, podOf("kube-system", "temper-agent-of-"+pending, ""), pending)
	pod.Labels = map[string]string{"app.kubernetes.io/name": "temper-agent"}
	create(t, pod)
	status := func(kubeconfig []byte, args ...string) (string, string, int) {
		t.Helper()
		return kubectlTemper(t, kubeconfig, append([]string{"status"}, args...)...)
	}
	out, errs, code := status(server.KubeConfig)
	for _, line := range []string{
		n.name + ` +cpu.idle .* ago`,
		bare + ` +- +unknown +- +0 +0 +0 +never: no agent's pod is there: DaemonSet temper-system/temper-agent selects other nodes`,
		pending + ` +- +unknown +- +0 +0 +0 +never: agent's pod kube-system/` + pod.Name + ` is not ready: Pending`,
	} {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(out) {
			t.Errorf("status %d: no %s in\n%s%s", code, line, out, errs)
		}
	}
	top, errs, code := kubectlTemper(t, server.KubeConfig, "top", "--once", n.name, bare, pending)
	if code != 0 || !strings.Contains(top, "0 of 3 nodes enforced") || !strings.Contains(top, "selects other nodes") {
		t.Errorf("top: status %d: %s%s", code, top, errs)
	}
	var seen []fleet.Node
	if out, errs, _ = status(server.KubeConfig, bare, "--json"); json.Unmarshal([]byte(out), &seen) != nil || len(seen) != 1 || !seen[0].Stale || seen[0].Agent == "" {
		t.Errorf("%s%s", out, errs)
	}
	if out, errs, code = status(server.KubeConfig, "nobody"); code != 1 || !strings.Contains(errs, `there is no node "nobody"; see 'kubectl get nodes' for the names`) {
		t.Errorf("a node that is not there: status %d: %s%s", code, out, errs)
	}

	// Who may read TemperNodes alone sees them, and is told what is not shown.
	reader := asUser(t, "reader", "system:authenticated")
	if err := apply("testdata/reader.yaml"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "who may read reports sees them, and what is hidden", func() bool {
		out, errs, code = status(reader)
		return code == 0 && strings.Contains(out, n.name) && !strings.Contains(out, bare) && strings.Contains(errs, `nodes without an agent cannot be shown: nodes is forbidden`)
	})
	if out, errs, code = status(reader, bare); code != 1 || !strings.Contains(errs, `no agent reports from a node "`+bare+`"; see 'kubectl get tempernodes' for those that do`) {
		t.Errorf("who may not read nodes: status %d: %s%s", code, out, errs)
	}
}
