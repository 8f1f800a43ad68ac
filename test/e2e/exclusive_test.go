//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod that the kubelet gives a CPU of its own (CPU manager, static) is in its tier and runs on that CPU alone, while the
// kubelet takes the CPU from all others; and nothing of this makes the scheduler leave.
func TestExclusiveCPU(t *testing.T) {
	b := newToolbox(t)
	awaitEnforced(t, metav1.ConditionTrue)
	before := b.sh(attachments)
	neighbour := podOf("kube-system", "neighbour", "while :; do :; done")
	neighbour.Spec.PriorityClassName = "temper-background"
	runPod(t, neighbour)
	awaitTier(t, neighbour, "background")

	pod := podOf("kube-system", "exclusive", "while :; do :; done")
	pod.Spec.PriorityClassName = "temper-critical"
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources("1", "20Mi"), Limits: resources("1", "20Mi")}
	runPod(t, pod)
	awaitTier(t, pod, "critical")
	own := b.awaitCPU(pod)
	if others := b.awaitCPU(neighbour); others == own {
		t.Errorf("both run on CPU %s", own)
	}
	if s := status(t); len(s.Problems) > 0 {
		t.Errorf("%q", s.Problems)
	}
	if after := b.sh(attachments); after != before {
		t.Errorf("attached %s times, and %s before", after, before)
	}
	TestAgentEnforces(t)
}

// awaitCPU awaits that a pod's container may run on one CPU only, and that each thread of it last ran there.
func (b *toolbox) awaitCPU(pod *corev1.Pod) (cpu string) {
	b.t.Helper()
	script := fmt.Sprintf(`for cg in $(find /host/sys/fs/cgroup -path '*%s*/*' -type d); do
			own=$(cat $cg/cpuset.cpus) || exit
			[ -z "$own" ] || echo $(for task in $(cat $cg/cgroup.threads); do cut -d' ' -f39 /proc/$task/stat; done | sort -u) $own
		done`, inCgroup(pod))
	onNode(b.t, pod.Name+" has one CPU", func() (bool, string) {
		out, err := b.try(script)
		var last string
		_, scan := fmt.Sscanf(out, "%s %s", &last, &cpu)
		_, number := strconv.Atoi(cpu)
		return errors.Join(err, scan, number) == nil && last == cpu, fmt.Sprint(out, err)
	})
	return cpu
}
