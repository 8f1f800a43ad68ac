//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
)

const (
	attached = "cat /host/sys/kernel/sched_ext/state"
	pins     = "ls /host/sys/fs/bpf"
)

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// Pods of each QoS class are in the tier that the default policy gives them.
func TestPodsLandInTheirTiers(t *testing.T) {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.HighestTierLabel: "critical"}}}
	if err := cluster.Create(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has its account", func() (bool, string) {
		err := get(t, &corev1.ServiceAccount{}, "shop", "default")
		return err == nil, "none yet"
	})
	guaranteed, burstable, bestEffort := podOf("shop", "guaranteed", forever), podOf("shop", "burstable", forever), podOf("shop", "besteffort", forever)
	guaranteed.Spec.PriorityClassName = "temper-critical"
	guaranteed.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources("100m", "20Mi"), Limits: resources("100m", "20Mi")}
	burstable.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources("100m", "20Mi")}
	for pod, tier := range map[*corev1.Pod]v1alpha1.Tier{guaranteed: "critical", burstable: "standard", bestEffort: "background"} {
		name := client.ObjectKeyFromObject(runPod(t, pod)).String()
		eventually(t, name+" is "+string(tier), func() (bool, string) {
			for _, s := range status(t).Tiers {
				if s.Tier == tier {
					return slices.Contains(s.Pods, name), strings.Join(s.Pods, " ")
				}
			}
			return false, "no such tier yet"
		})
	}
}

// The node's label leaves it to the kernel's own scheduler.
func TestSafeMode(t *testing.T) {
	b := newToolbox(t)
	b.await(attached, "enabled")
	label := func(patch string) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
		if err := cluster.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1alpha1.SafeModeLabel+`":`+patch+`}}}`))); err != nil {
			t.Fatal(err)
		}
	}
	label(`"true"`)
	t.Logf("safe mode took %v", b.await(attached, "disabled"))
	awaitEnforced(t, metav1.ConditionFalse)
	if s := status(t); !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionSafeMode) {
		t.Errorf("%+v", s.Conditions)
	}
	label("null")
	awaitEnforced(t, metav1.ConditionTrue)
}

// Whatever is killed is back. The scheduler stays attached meanwhile, unless the agent comes back later than its
// heartbeatTimeout, as it may on a node this slow.
func TestKilled(t *testing.T) {
	const attachments = "cat /host/sys/kernel/sched_ext/enable_seq"
	b := newToolbox(t)
	for _, program := range []string{"scx_temper", "temper-agent", "kubelet", "containerd"} {
		awaitEnforced(t, metav1.ConditionTrue)
		before, pid := b.sh(attachments), b.sh("pidof "+program)
		_, _ = b.try("kill -9 " + pid) // which may end the answer, too
		eventually(t, program+" runs again", func() (bool, string) {
			now, err := b.try("pidof " + program)
			return err == nil && now != pid, fmt.Sprint(now, err)
		})
		b.await(attached, "enabled")
		if after := b.sh(attachments); after != before && program != "temper-agent" {
			t.Errorf("%s: attached %s times, and %s before", program, after, before)
		}
	}
	awaitEnforced(t, metav1.ConditionTrue)
}

// While critical pods use all of the node, the kubelet is ready, and answers for whoever is not below them. A background
// pod has its turns only, and what is executed in it takes as long as that takes.
func TestFullOfCriticalWork(t *testing.T) {
	b := newToolbox(t)
	critical := podOf("kube-system", "critical", forever)
	critical.Spec.PriorityClassName = "temper-critical"
	runPod(t, critical)
	spin := podOf("kube-system", "spin", "for i in 1 2 3 4; do while :; do :; done & done; wait")
	spin.Spec.PriorityClassName = "temper-critical"
	runPod(t, spin)
	began, idle := b.idle()
	for _, pod := range []*corev1.Pod{b.pod, critical} {
		started := time.Now()
		if out, err := execute(t, pod.Namespace, pod.Name, "/busybox", "echo", "here"); err != nil || out != "here\n" {
			t.Errorf("%q, %v", out, err)
		}
		t.Logf("exec into %s took %.2f s", pod.Name, time.Since(started).Seconds())
	}
	TestNodeIsReady(t)
	ended, idleSince := b.idle()
	if share := (idleSince - idle) / (ended - began); share > 0.1 { // of one CPU
		t.Errorf("the node was not full: CPUs idled for %.2f of the time", share)
	}
}

// What is removed from the cluster leaves the node as it was.
func TestRemoval(t *testing.T) {
	b := newToolbox(t)
	b.await(attached, "enabled")
	b.await(pins, "temper")
	deleteAgent(t)
	b.await(attached, "disabled")
	b.await(pins, "")
}
