//go:build kubernetes

package kubernetes

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/node/nodetop"
)

// reachable is an address of this host by which the API server forwards to pods: it refuses loopback.
func reachable(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip := a.(*net.IPNet).IP; ip.IsGlobalUnicast() && ip.To4() != nil {
			return ip.String()
		}
	}
	t.Fatalf("the host has no address but loopback, by which an API server reaches a pod: %v", addresses)
	return ""
}

// serving starts the node's agent anew, with metrics, in what the API server takes for its pod.
func (n *node) serving() *corev1.Pod {
	n.t.Helper()
	n.end(syscall.SIGTERM)
	address := freePort(n.t, reachable(n.t))
	n.start(asAgent(n.t, n.name), "--metrics", address.String())

	pod := bind(n.t, podOf("kube-system", "temper-agent-of-"+n.name, ""), n.name)
	pod.Labels = map[string]string{"app.kubernetes.io/name": "temper-agent"}
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: int32(address.Port)}}
	create(n.t, pod)
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, address.IP.String()
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	if err := cluster.Status().Update(n.t.Context(), pod); err != nil {
		n.t.Fatal(err)
	}
	return pod
}

// lookAt is what 'kubectl temper top' sees of one node, once.
func lookAt(t *testing.T, node string) nodetop.Look {
	t.Helper()
	out, errs, status := kubectlTemper(t, server.KubeConfig, "top", node, "--once", "--json")
	var seen nodetop.Round
	if err := json.Unmarshal([]byte(out), &seen); err != nil || status != 0 || len(seen.Nodes) != 1 {
		t.Fatalf("status %d, %v: %s%s", status, err, out, errs)
	}
	return seen.Nodes[0]
}

// An agent that serves metrics is asked for them through the API server; of another, the report has what there is.
func TestTop(t *testing.T) {
	n := newNode(t, nil)
	_, batch := n.run("batch", "", "/kubepods/besteffort")
	fixture.Write(t, n.root, "/sys/fs/cgroup"+batch+"/cpu.stat", "usage_usec 2500000\n")
	eventually(t, "the pod is reported", func() bool { return len(n.pods("background")) == 1 })
	if l := lookAt(t, n.name); l.Live || l.WhyNot != "no agent's pod runs there" || len(l.Pods) != 1 || l.Pods[0].CPU != nil {
		t.Errorf("of a report: %+v", l)
	}
	agent := n.serving()
	eventually(t, "the agent is asked, and knows its rung and the pod", func() bool {
		l := lookAt(t, n.name)
		return l.Live && l.Rung == "cpu.idle" && len(l.Pods) == 1 && l.Pods[0].Name == "home/batch" && l.Pods[0].CPU.Total == 2.5
	})
	if l := lookAt(t, n.name); l.Tiers[3].CPU.Total != 2.5 || l.Overrun != nil {
		t.Errorf("%+v", l)
	}

	next := n.watch(t)
	first := next().Nodes[0].Pods[0]
	fixture.Write(t, n.root, "/sys/fs/cgroup"+batch+"/cpu.stat", "usage_usec 62500000\n")
	eventually(t, "the pod's rate is that of the time between two looks", func() bool {
		now := next().Nodes[0].Pods[0]
		return first.CPU.Rate == nil && now.CPU.Total == 62.5 && *now.CPU.Rate > 0
	})
	eventually(t, "and ends", func() bool { return *next().Nodes[0].Pods[0].CPU.Rate == 0 })

	out, errs, status := kubectlTemper(t, server.KubeConfig, "top", "--once", "--sort", "name")
	if line := regexp.MustCompile(`(?m)^home/batch +background +62.5 s +- +` + n.name + `$`); status != 0 || !line.MatchString(out) || strings.Contains(out, "\x1b") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	agent.Status.PodIP, agent.Status.PodIPs = "", nil
	if err := cluster.Status().Update(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an agent that cannot be reached leaves its report", func() bool {
		l := lookAt(t, n.name)
		return !l.Live && strings.HasPrefix(l.WhyNot, "its agent cannot be asked: address not allowed") && len(l.Tiers) == 4
	})
}

// watch runs 'kubectl temper top' until the test ends, and gives a function that awaits its next look.
func (n *node) watch(t *testing.T) func() nodetop.Round {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(root+"/bin/kubectl-temper", "top", n.name, "--every", "100ms", "--json", "--kubeconfig", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			t.Errorf("interrupted, it ends with %v", err)
		}
	})
	lines := bufio.NewReader(out)
	return func() (seen nodetop.Round) {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &seen)
		}
		if err != nil || seen.Error != "" {
			t.Fatalf("%v: %s", err, line)
		}
		return seen
	}
}

func TestTopSaysWhatIsWrong(t *testing.T) {
	saysWhatIsWrong(t, []string{"top", "--once"}, []wrongUse{
		{"a node that is not there", server.KubeConfig, []string{"nobody"}, 1, `there is no node "nobody"`},
		{"an order that is not known", server.KubeConfig, []string{"--sort", "age"}, 2, "--sort age is not known; use one of cpu, wait, name"},
		{"looks too often", server.KubeConfig, []string{"--every", "1ms"}, 2, "--every 1ms is too short; use 100ms or more"},
		{"an order of JSON", server.KubeConfig, []string{"--json", "--sort", "cpu"}, 2, "--json and --sort exclude each other"},
	})
}

// The shell knows nodes and orders.
func TestTopIsCompleted(t *testing.T) {
	n := newNode(t, nil)
	eventually(t, "the node is reported", func() bool { return n.status().Rung == "cpu.idle" })
	out, _, _ := kubectlTemper(t, server.KubeConfig, "__complete", "top", "")
	if !strings.Contains(out, n.name+"\tcpu.idle\n") {
		t.Errorf("%q", out)
	}
	if out, _, _ = kubectlTemper(t, server.KubeConfig, "__complete", "top", "--sort", ""); !strings.HasPrefix(out, strings.Join(nodetop.Orders, "\n")+"\n") {
		t.Errorf("%q", out)
	}
}
