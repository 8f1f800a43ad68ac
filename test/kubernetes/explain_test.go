//go:build kubernetes

package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/explain"
)

// kubectlTemper runs the program as a user does, and gives its output, its errors and its status.
func kubectlTemper(t *testing.T, kubeconfig []byte, args ...string) (string, string, int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), root+"/bin/kubectl-temper", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+file)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			t.Fatal(err)
		}
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// bind says on which node a pod runs. A scheduler would.
func bind(t *testing.T, pod *corev1.Pod, node string) *corev1.Pod {
	t.Helper()
	pod.Spec.NodeName = node
	return pod
}

func TestExplainOfACluster(t *testing.T) {
	inForce(t)
	namespace(t, "explain", map[string]string{highestTier: "critical"})
	create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "fast", Labels: map[string]string{"pool": "latency"}}})
	create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "plain"}})
	create(t, &v1alpha1.TierPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "latency"},
		Spec: v1alpha1.TierPolicySpec{
			NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "latency"}},
			QoS:          v1alpha1.QoSTiers{BestEffort: "standard"},
		},
	})
	labelled := bind(t, podOf("explain", "labelled", ""), "plain")
	labelled.Labels = map[string]string{v1alpha1.TierLabel: "critical"}
	ended := bind(t, podOf("explain", "ended", ""), "plain")
	for _, pod := range []*corev1.Pod{
		bind(t, podOf("explain", "on-fast", "temper-critical"), "fast"),
		bind(t, podOf("explain", "on-fast-too", ""), "fast"),
		bind(t, podOf("explain", "on-plain", "temper-critical"), "plain"),
		bind(t, podOf("explain", "on-no-node-there-is", ""), "gone"),
		podOf("explain", "pending", ""),
		labelled,
		ended,
	} {
		create(t, pod)
	}
	ended.Status.Phase = corev1.PodSucceeded
	if err := cluster.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	out, errs, status := kubectlTemper(t, server.KubeConfig, "explain", "-n", "explain")
	if status != 0 || errs != "" {
		t.Errorf("status %d: %s", status, errs)
	}
	fixture.Golden(t, "explain.txt", out)

	out, errs, status = kubectlTemper(t, server.KubeConfig, "explain", "-n", "explain", "on-plain", "ended", "--json")
	var answers []explain.Answer
	if err := json.Unmarshal([]byte(out), &answers); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s", status, err, errs)
	}
	if len(answers) != 2 || answers[0].Tier != tier.Background || answers[1].Tier != tier.Critical || answers[1].Rule != "critical" {
		t.Errorf("%+v", answers)
	}
	out, _, _ = kubectlTemper(t, server.KubeConfig, "explain", "-A", "--json")
	if !strings.Contains(out, "Pod/explain/on-fast-too") {
		t.Errorf("-A shows no pod of another namespace:\n%s", out)
	}
}

func TestExplainSaysWhatIsWrong(t *testing.T) {
	saysWhatIsWrong(t, []string{"explain"}, []wrongUse{
		{"a pod that is not there", server.KubeConfig, []string{"nobody"}, 1, `pods "nobody" not found`},
		{"a namespace without pods", server.KubeConfig, []string{"-n", "kube-public"}, 0, "there are no pods in namespace kube-public"},
		{"files and pods", server.KubeConfig, []string{"-f", "x.yaml", "web"}, 2, "pods are those of the files, or those of the cluster"},
		{"all namespaces and a pod", server.KubeConfig, []string{"-A", "web"}, 2, "give their namespace by -n"},
		{"labels of a node without files", server.KubeConfig, []string{"--node-labels", "a=b"}, 2, "--node-labels is for manifests"},
		{"no cluster", nil, nil, 9, "no kubeconfig names a cluster"},
	})
}

// wrongUse is a use of kubectl temper that cannot do what is asked.
type wrongUse struct {
	what       string
	kubeconfig []byte
	args       []string
	status     int
	says       string
}

// saysWhatIsWrong tries a command in wrong ways, and in one that is wrong for all: where the cluster is away.
func saysWhatIsWrong(t *testing.T, command []string, uses []wrongUse) {
	t.Helper()
	away := regexp.MustCompile(`server: .*`).ReplaceAll(server.KubeConfig, []byte("server: https://127.0.0.1:1"))
	for _, u := range append(uses, wrongUse{"a cluster that is away", away, nil, 1, "connection refused"}) {
		_, errs, status := kubectlTemper(t, u.kubeconfig, slices.Concat(command, u.args)...)
		if status != u.status || !strings.Contains(errs, u.says) {
			t.Errorf("%s: status %d, and it says %q", u.what, status, errs)
		}
	}
}

func TestExplainInAClusterWithoutTemper(t *testing.T) {
	bare := apiServer()
	if _, err := bare.Start(); err != nil {
		t.Fatal(err)
	}
	defer bare.Stop()
	_, errs, status := kubectlTemper(t, bare.KubeConfig, "explain")
	if status != 1 || !strings.Contains(errs, "this cluster knows no TierPolicy") {
		t.Errorf("status %d: %s", status, errs)
	}
}
