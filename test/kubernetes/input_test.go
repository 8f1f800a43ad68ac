//go:build kubernetes

package kubernetes

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
)

// policyFor makes a TierPolicy for the nodes of a pool, which comes before the default one.
func policyFor(name, pool string, spec v1alpha1.TierPolicySpec) *v1alpha1.TierPolicy {
	spec.Precedence = 10
	spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": pool}}
	return &v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// A pod keeps the tier that its PriorityClass gave it when that is gone, or is another. New pods that name it are refused.
func TestAPriorityClassThatVanishes(t *testing.T) {
	create(t, policyFor("express", "express", v1alpha1.TierPolicySpec{
		Rules: []v1alpha1.TierRule{{Name: "express", PriorityClassNames: []string{"express"}, Tier: "critical"}},
	}))
	express := func(value int32) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "express"}, Value: value}
	}
	if err := cluster.Create(t.Context(), express(5000)); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, map[string]string{"pool": "express"})
	eventually(t, "a pod may have the class", func() bool { return tryOut(t, podOf("home", "try", "express")) == nil })
	first, _ := n.run("first", "express", "/kubepods/besteffort")
	critical := func(what string, want ...string) {
		t.Helper()
		eventually(t, what, func() bool { return slices.Equal(slices.Sorted(slices.Values(n.pods("critical"))), want) })
	}
	critical("its pod is critical", "home/first")

	if err := cluster.Delete(t.Context(), express(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new pod is refused", func() bool {
		err := tryOut(t, podOf("home", "second", "express"))
		return err != nil && strings.Contains(err.Error(), "no PriorityClass with name express was found")
	})
	n.end(syscall.SIGTERM)
	n.start(asAgent(t, n.name))
	eventually(t, "the next agent is there", func() bool { return n.state().PID == n.cmd.Process.Pid })
	critical("the pod is critical for an agent that has never seen the class", "home/first")
	if out, errs, _ := kubectlTemper(t, server.KubeConfig, "explain", "-n", "home", "first"); !strings.Contains(out, "PriorityClass express") {
		t.Errorf("explain says\n%s%s", out, errs)
	}

	create(t, express(-10))
	eventually(t, "a pod may have the class again", func() bool { return tryOut(t, podOf("home", "try", "express")) == nil })
	second, _ := n.run("second", "express", "/kubepods/besteffort")
	critical("both are critical", "home/first", "home/second")
	if *first.Spec.Priority != 5000 || *second.Spec.Priority != -10 {
		t.Errorf("priorities %d and %d", *first.Spec.Priority, *second.Spec.Priority)
	}
}

// Of policies that disagree one applies, whole: that of the greatest precedence, of equals the oldest; and the next when it
// is gone. A pod changes its tier while it runs.
func TestPoliciesThatDisagree(t *testing.T) {
	// Without a rule for temper-critical, which the default policy has.
	older := policyFor("z-older", "contested", v1alpha1.TierPolicySpec{QoS: v1alpha1.QoSTiers{BestEffort: "standard"}})
	if err := cluster.Create(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	var younger *v1alpha1.TierPolicy
	eventually(t, "a policy is younger, by the second", func() bool {
		younger = policyFor("a-younger", "contested", v1alpha1.TierPolicySpec{QoS: v1alpha1.QoSTiers{BestEffort: "background"}})
		if err := cluster.Create(t.Context(), younger); err != nil {
			t.Fatal(err)
		}
		if older.CreationTimestamp.Before(&younger.CreationTimestamp) {
			return true
		}
		if err := cluster.Delete(t.Context(), younger); err != nil {
			t.Fatal(err)
		}
		return false
	})
	n := newNode(t, map[string]string{"pool": "contested"})
	_, batch := n.run("batch", "", "/kubepods/besteffort")
	n.run("web", "temper-critical", "/kubepods/burstable")
	applies := func(policy, idle string, critical ...string) {
		t.Helper()
		eventually(t, policy+" applies, and nothing of the others", func() bool {
			return n.status().Policy == policy && n.idle(batch) == idle && slices.Equal(n.pods("critical"), critical)
		})
		if out, errs, _ := kubectlTemper(t, server.KubeConfig, "explain", "-n", "home", "batch"); !strings.Contains(out, policy) {
			t.Errorf("explain says\n%s%s", out, errs)
		}
	}
	applies("z-older", "0")
	for _, gone := range []*v1alpha1.TierPolicy{older, younger} {
		if err := cluster.Delete(context.Background(), gone); err != nil {
			t.Fatal(err)
		}
		if gone == older {
			applies("a-younger", "1")
		}
	}
	applies("default", "1", "home/web")
	if problems := n.state().Problems; len(problems) > 0 {
		t.Errorf("problems: %q", problems)
	}
}
