//go:build kubernetes

package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/fixture"
)

// resident is the memory that the agent has in use, in MiB, once it has given back what it can.
func (n *node) resident() int {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(n.cmd.Process.Pid), "status"))
	if err != nil {
		n.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		n.t.Fatal(err)
	}
	return kib >> 10
}

// pass is one pod's life: it is made, its cgroup comes, gets its tier, and both go. Of a static pod the cgroup comes first.
func (n *node) pass(name string, static bool) {
	n.t.Helper()
	pod := bind(n.t, podOf("kube-system", name, ""), n.name)
	hash := fmt.Sprintf("%032x", []byte(name))
	if static {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: hash, "kubernetes.io/config.hash": hash}
		fixture.Cgroup(n.t, n.root, "/kubepods/besteffort/pod"+hash)
	}
	if err := cluster.Create(n.t.Context(), pod); err != nil {
		n.t.Fatal(err)
	}
	cg := "/kubepods/besteffort/pod" + hash
	if !static {
		cg = "/kubepods/besteffort/pod" + string(pod.UID)
		fixture.Cgroup(n.t, n.root, cg)
	}
	eventually(n.t, name+" is in background", func() bool { return n.idle(cg) == "1" })
	if err := cluster.Delete(n.t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		n.t.Error(err)
	}
	if err := os.RemoveAll(n.root.Cgroup(cg)); err != nil {
		n.t.Error(err)
	}
}

// A thousand pods come and go: each gets its tier, and nothing of them is left.
func TestChurn(t *testing.T) {
	const warm, pods, abreast = 100, 1000, 8
	n := newNode(t, nil)
	eventually(t, "the node has fallen to cpu.idle, as there is no scheduler", func() bool { return n.status().Rung == "cpu.idle" })
	turn := func(from, to int) {
		t.Helper()
		t.Run(fmt.Sprintf("to %d", to), func(t *testing.T) {
			for w := range abreast {
				t.Run(strconv.Itoa(w), func(t *testing.T) {
					t.Parallel()
					seen := *n
					seen.t = t
					for i := from + w; i < to; i += abreast {
						seen.pass(fmt.Sprintf("churn-%d", i), i%5 == 0)
					}
				})
			}
		})
		eventually(t, "no pod is left", func() bool { return len(n.state().Members) == 0 })
	}
	turn(0, warm)
	before := n.resident()
	turn(warm, warm+pods)
	after := n.resident()
	t.Logf("resident: %d MiB after %d pods, %d MiB after %d", before, warm, after, warm+pods)
	const grown = 20 // the collector's slack
	if after > before+grown {
		t.Errorf("the agent has grown from %d to %d MiB", before, after)
	}
	if problems := n.state().Problems; len(problems) > 0 {
		t.Errorf("problems: %q", problems)
	}
}
