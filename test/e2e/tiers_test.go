//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/enforce"
)

const (
	attached    = "cat /host/sys/kernel/sched_ext/state"
	attachments = "cat /host/sys/kernel/sched_ext/enable_seq" // so far
	pins        = "ls /host/sys/fs/bpf"
)

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// Pods of each QoS class are in the tier that the default policy gives them.
func TestPodsLandInTheirTiers(t *testing.T) {
	books := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "books", Labels: map[string]string{v1alpha1.HighestTierLabel: "critical"}}}
	if err := cluster.Create(t.Context(), books); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has its account", func() (bool, string) {
		err := get(t, &corev1.ServiceAccount{}, "books", "default")
		return err == nil, "none yet"
	})
	guaranteed, burstable, bestEffort := podOf("books", "guaranteed", forever), podOf("books", "burstable", forever), podOf("books", "besteffort", forever)
	guaranteed.Spec.PriorityClassName = "temper-critical"
	guaranteed.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources("500m", "20Mi"), Limits: resources("500m", "20Mi")}
	burstable.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources("100m", "20Mi")}
	for pod, tier := range map[*corev1.Pod]v1alpha1.Tier{guaranteed: "critical", burstable: "standard", bestEffort: "background"} {
		awaitTier(t, runPod(t, pod), tier)
	}
}

// The node's label leaves it to the kernel's own scheduler.
func TestSafeMode(t *testing.T) {
	b := newToolbox(t)
	b.await(attached, "enabled")
	labelled, _ := b.idle()
	labelNode(t, v1alpha1.SafeModeLabel, `"true"`)
	b.sh("timeout 60 sh -c 'until grep -q disabled /host/sys/kernel/sched_ext/state; do usleep 10000; done'")
	left, _ := b.idle()
	t.Logf("safe mode took less than %.2f s of the node's time", left-labelled)
	awaitEnforced(t, metav1.ConditionFalse)
	if s := status(t); !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionSafeMode) {
		t.Errorf("%+v", s.Conditions)
	}
	labelNode(t, v1alpha1.SafeModeLabel, "null")
	awaitEnforced(t, metav1.ConditionTrue)
}

// labelNode gives a label of the node a value, in JSON; null takes it away.
func labelNode(t *testing.T, label, value string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+label+`":`+value+`}}}`))
	if err := cluster.Patch(t.Context(), n, patch); err != nil {
		t.Fatal(err)
	}
}

// The kubelet and the runtime are system wherever they are: on a node without systemd in a slice that no configuration names.
func TestKubeletAndRuntimeAreSystem(t *testing.T) {
	b := newToolbox(t)
	awaitEnforced(t, metav1.ConditionTrue)
	for _, name := range []string{"kubelet", "containerd"} {
		want := "/runtime.slice/" + name + ".service"
		if *systemd {
			want = "/system.slice"
		}
		onNode(t, name+" is system", func() (bool, string) {
			members := b.agent().Members
			return slices.ContainsFunc(members, func(m agent.Member) bool { return m.Cgroup == want && m.Tier == tier.System && m.Present }), fmt.Sprint(members)
		})
	}
	if problems := strings.Join(status(t).Problems, "; "); strings.Contains(problems, "kubelet") || strings.Contains(problems, "runtime") {
		t.Error(problems)
	}
}

// Whatever is killed is back, and the scheduler stays attached meanwhile. The next containerd tells the agent of containers,
// too.
func TestKilled(t *testing.T) {
	b := newToolbox(t)
	for _, program := range []string{"scx_temper", "temper-agent", "kubelet", "containerd"} {
		awaitEnforced(t, metav1.ConditionTrue)
		awaitSaid(t, registered, 1)
		before, pid := b.sh(attachments), b.sh("pidof "+program)
		_, _ = b.try("kill -9 " + pid) // which may end the answer, too
		onNode(t, program+" runs again", func() (bool, string) {
			now, err := b.try("pidof " + program)
			return err == nil && now != pid, fmt.Sprint(now, err)
		})
		b.await(attached, "enabled")
		if program == "containerd" {
			awaitSaid(t, registered, 2)
		}
		if after := b.sh(attachments); after != before {
			t.Errorf("%s: attached %s times, and %s before", program, after, before)
		}
	}
	awaitEnforced(t, metav1.ConditionTrue)
}

// agent is the word of the node's agent on itself; its PID is 0 once it has ended in order.
func (b *toolbox) agent() (state agent.State) {
	b.t.Helper()
	text, err := b.try("cat /host/run/temper/status.json")
	if err == nil {
		err = json.Unmarshal([]byte(text), &state)
	}
	if err != nil {
		b.t.Logf("no word of an agent: %v", err)
	}
	return state
}

// The next agent adopts the scheduler of one that was replaced. A node that the DaemonSet does not select any more is left
// as it was before.
func TestUpgradeAndOptingOut(t *testing.T) {
	const selected = "temper.dev/agent"
	b := newToolbox(t)
	awaitEnforced(t, metav1.ConditionTrue)
	before, pid := b.sh(attachments), b.agent().PID
	labelNode(t, selected, `"yes"`)
	if err := helm(t.Context(), "upgrade", "../../charts/temper", "--reuse-values", "--set", `nodeSelector.temper\.dev/agent=yes`); err != nil {
		t.Fatal(err)
	}
	onNode(t, "the next agent enforces", func() (bool, string) {
		s := b.agent()
		return s.PID != 0 && s.PID != pid && s.Rung == enforce.SCX, s.Reason
	})
	if after := b.sh(attachments); after != before {
		t.Errorf("attached %s times, and %s before", after, before)
	}
	awaitEnforced(t, metav1.ConditionTrue)

	labelNode(t, selected, "null")
	b.await(attached, "disabled")
	b.await(pins, "")
	awaitEnforced(t, metav1.ConditionFalse)
	labelNode(t, selected, `"yes"`)
	awaitEnforced(t, metav1.ConditionTrue)
}

// What is removed from the cluster leaves the node as it was, though the agent's rights go, too.
func TestRemoval(t *testing.T) {
	b := newToolbox(t)
	b.await(attached, "enabled")
	b.await(pins, "temper")
	if err := helm(t.Context(), "uninstall"); err != nil {
		t.Fatal(err)
	}
	b.await(attached, "disabled")
	b.await(pins, "")
}
