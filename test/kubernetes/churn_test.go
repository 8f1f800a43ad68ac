//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/base/fixture"
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

// life is one pod's: it is made, its cgroup comes, gets its tier, and both go. Of a static pod the cgroup comes first.
func (n *node) life(ctx context.Context, name string, static bool) error {
	pod := podOf("home", name, "")
	pod.Spec.NodeName = n.name
	hash := fmt.Sprintf("%032x", []byte(name))
	cg := "/kubepods/besteffort/pod" + hash
	if static {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: hash, "kubernetes.io/config.hash": hash}
		if err := fixture.MakeCgroup(n.root, cg); err != nil {
			return err
		}
	}
	if err := cluster.Create(ctx, pod); err != nil {
		return err
	}
	if !static {
		cg = "/kubepods/besteffort/pod" + string(pod.UID)
		if err := fixture.MakeCgroup(n.root, cg); err != nil {
			return err
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		text, err := os.ReadFile(n.root.Cgroup(cg) + "/cpu.idle")
		return strings.TrimSpace(string(text)) == "1", err
	})
	if err != nil {
		return fmt.Errorf("%s is not in background: %w", name, err)
	}
	return errors.Join(cluster.Delete(ctx, pod, client.GracePeriodSeconds(0)), os.RemoveAll(n.root.Cgroup(cg)))
}

// lives has pods come and go, so many at a time, and awaits that nothing of them is left.
func (n *node) lives(from, to, abreast int) {
	n.t.Helper()
	var all sync.WaitGroup
	for w := range abreast {
		all.Go(func() {
			for i := from + w; i < to; i += abreast {
				if err := n.life(n.t.Context(), fmt.Sprintf("churn-%d", i), i%5 == 0); err != nil {
					n.t.Error(err)
				}
			}
		})
	}
	all.Wait()
	n.awaitNoPods()
}

func (n *node) awaitNoPods() {
	n.t.Helper()
	eventually(n.t, "no pod is left", func() bool { return len(n.state().Members) == 0 })
}

// A thousand pods come and go: each gets its tier, and nothing of them is left.
func TestChurn(t *testing.T) {
	const warm, pods, abreast = 100, 1000, 8
	n := newNode(t, nil)
	eventually(t, "the node has fallen to cpu.idle, as there is no scheduler", func() bool { return n.status().Rung == "cpu.idle" })
	n.lives(0, warm, abreast)
	before := n.resident()
	n.lives(warm, warm+pods, abreast)
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
