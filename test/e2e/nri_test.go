//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the agent says of the runtime.
const (
	registered = "the container runtime says when containers start"
	tooLate    = `a container starts before the agent has looked; its tier follows"`
)

// containerd tells the agent when containers start.
func TestRuntimeTellsTheAgent(t *testing.T) {
	awaitEnforced(t, metav1.ConditionTrue)
	awaitSaid(t, registered+`" runtime="containerd 2`, 1)
}

// awaitSaid awaits that the agent has said something so many times since it was started, and returns all that it said.
func awaitSaid(t *testing.T, text string, times int) (log string) {
	t.Helper()
	onNode(t, fmt.Sprintf("the agent has said %q (%d)", text, times), func() (bool, string) {
		var err error
		log, err = logOf(t, release, agentPod(t))
		return strings.Count(log, text) >= times, fmt.Sprint(log, err)
	})
	return log
}

// A container waits until the agent has looked, and so finds its tier in force. The agent knows the pod, and is stopped
// before the pod's cgroup comes: nothing but the runtime's question gives the pod its tier before its first instruction.
func TestTierBeforeFirstInstruction(t *testing.T) {
	b := newToolbox(t)
	awaitEnforced(t, metav1.ConditionTrue)
	awaitSaid(t, registered, 1)
	const attempts = 5 // on a busy host the agent may not be back within 100 ms; it says so
	for i := range attempts {
		pod := firstInstruction(fmt.Sprintf("first-%d", i))
		b.stopAgentWhile(pod)
		found, err := logOf(t, pod.Namespace, pod.Name)
		if err != nil {
			t.Fatal(err)
		}
		if log := awaitSaid(t, registered, 1); strings.Contains(log, tooLate+" pod="+client.ObjectKeyFromObject(pod).String()) {
			t.Logf("the agent was not back in time; the first instruction found %q", found)
			continue
		}
		if found != "critical\n" {
			t.Errorf("the first instruction found %q", found)
		}
		return
	}
	t.Fatalf("the agent did not answer in time, %d times", attempts)
}

// firstInstruction is a critical pod that says which tier it finds itself in, and ends.
func firstInstruction(name string) *corev1.Pod {
	pod := podOf("kube-system", name, "")
	pod.Spec.NodeName = nodeName
	pod.Spec.PriorityClassName = "temper-critical"
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	main := &pod.Spec.Containers[0]
	main.Image, main.Command = "temper.dev/tierof:e2e", nil
	seeNode(pod, "/sys/fs/bpf", "/sys/fs/bpf")
	return pod
}

// stopAgentWhile has the node start a pod, all but its first instruction, while the agent knows of it and is stopped. It
// returns when the pod has ended.
func (b *toolbox) stopAgentWhile(pod *corev1.Pod) {
	b.t.Helper()
	const network, away = "/host/etc/cni/net.d/10-ptp.conflist", "/host/etc/cni/10-ptp.conflist"
	// Without a network the kubelet makes nothing of a pod, and the agent has the time to hear of it.
	b.sh("mv " + network + " " + away)
	back := "cp " + away + " " + network // which containerd looks at; it overlooks what is moved there
	defer b.try("[ -e " + network + " ] || " + back)
	awaitReady(b.t, corev1.ConditionFalse)
	createPod(b.t, pod)
	b.await("grep -q "+client.ObjectKeyFromObject(pod).String()+" /host/run/temper/cluster.json && echo known", "known")
	if made := b.sh("find /host/sys/fs/cgroup -name '*" + inCgroup(pod) + "*'"); made != "" {
		b.t.Fatalf("there already: %s", made)
	}
	b.sh("kill -STOP $(pidof temper-agent)")
	defer b.try("kill -CONT $(pidof temper-agent)")
	b.sh(back)
	b.awaitAsked(pod)
	b.sh("kill -CONT $(pidof temper-agent)")
	awaitPhase(b.t, pod, corev1.PodSucceeded)
	awaitReady(b.t, corev1.ConditionTrue)
}

// awaitAsked awaits that containerd waits for an answer before it starts a container, which its stacks say.
func (b *toolbox) awaitAsked(pod *corev1.Pod) {
	b.t.Helper()
	const script = `pid=$(pidof containerd); stacks=/host/tmp/containerd.$pid.stacks.log; rm -f $stacks; kill -USR1 $pid
		until [ -s $stacks ]; do usleep 50000; done; grep -q 'adaptation.*startContainer' $stacks && echo waits`
	onNode(b.t, "containerd waits for the agent", func() (bool, string) {
		if err := cluster.Get(b.t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return false, err.Error()
		}
		if pod.Status.Phase != corev1.PodPending {
			found, err := logOf(b.t, pod.Namespace, pod.Name)
			b.t.Fatalf("it did not wait, and the first instruction found %q %v", found, err)
		}
		out, err := b.try(script)
		return out == "waits", fmt.Sprint(out, err)
	})
}
