//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/internal/cluster/bugtool"
)

// An archive has what there is, and says what there is not: here no kubelet gives the agent's log.
func TestBugtool(t *testing.T) {
	secret := podOf("default", "with-secrets", "")
	secret.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "of-nobody-else"}}
	create(t, secret)
	agent := bind(t, podOf("kube-system", "temper-agent-x7k", ""), "bugtool-node")
	agent.Labels = map[string]string{"app.kubernetes.io/name": "temper-agent"}
	create(t, agent)
	elsewhere := bind(t, podOf("kube-system", "temper-agent-y8l", ""), "another-node")
	elsewhere.Labels = agent.Labels
	create(t, elsewhere)

	file := filepath.Join(t.TempDir(), "report.tar.gz")
	out, errs, status := kubectlTemper(t, server.KubeConfig, "bugtool", "bugtool-node", "--output", file, "--json")
	if status != 0 {
		t.Fatal(errs)
	}
	var told bugtool.Summary
	if err := json.Unmarshal([]byte(out), &told); err != nil || told.File != file {
		t.Fatalf("%v in\n%s", err, out)
	}
	for _, want := range []string{"admissionbindings", "admissionpolicies", "agents", "daemonsets", "events", "explain", "namespaces", "nodes", "priorityclasses",
		"status", "tempernodes", "tierpolicies", "version"} {
		if !slices.Contains(told.Holds, want+".yaml") {
			t.Errorf("no %s.yaml in %v", want, told.Holds)
		}
	}
	if len(told.Faults) != 1 || !strings.HasPrefix(told.Faults[0], "logs/bugtool-node/temper-agent-x7k: ") {
		t.Errorf("%v", told.Faults)
	}
	text, err := exec.CommandContext(t.Context(), "tar", "-xzOf", file).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"temper-own-node", "priorityClassNames", "temper-agent-x7k", "default/with-secrets"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the archive", want)
		}
	}
	if strings.Contains(string(text), "of-nobody-else") {
		t.Error("another's pod is in the archive")
	}
	nobody := asUser(t, "nobody", "system:authenticated")
	if out, errs, status := kubectlTemper(t, nobody, "bugtool", "--output", file+"3"); status != 1 || !strings.Contains(errs, "nothing of Temper could be had; ask somebody who may read") {
		t.Errorf("who may read nothing: status %d, %s%s", status, out, errs)
	}
	// Something is better than nothing, and is no failure.
	if err := apply("testdata/bugreader.yaml"); err != nil {
		t.Fatal(err)
	}
	some := asUser(t, "bugreader", "system:authenticated")
	eventually(t, "who may read TierPolicies alone has those", func() bool {
		_, errs, status := kubectlTemper(t, some, "bugtool", "--output", file+"4")
		return status == 0 && strings.Contains(errs, "not in it: nodes: ")
	})
	away := regexp.MustCompile(`server: .*`).ReplaceAll(server.KubeConfig, []byte("server: https://127.0.0.1:1"))
	if _, errs, status := kubectlTemper(t, away, "bugtool", "--output", file+"2"); status == 0 || !strings.Contains(errs, "connection refused") {
		t.Errorf("without an API server: status %d, %s", status, errs)
	}
}
