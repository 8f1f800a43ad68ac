package policy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/node/config"
)

func limitedPod(asks string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LimitsLabel: asks}}}
}

func TestLimitsOfAPod(t *testing.T) {
	with := func(mode string, grants []string) *Policy {
		return compile(t, v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.TierPolicySpec{Limits: mode, PodLimits: grants}})
	}
	for _, c := range []struct {
		what    string
		policy  *Policy
		pod     *corev1.Pod
		want    string
		own     string
		refused string
	}{
		{"no label", with("", nil), &corev1.Pod{}, "paced (policy)", "", ""},
		{"no label, another mode of the node", with("gap", nil), &corev1.Pod{}, "gap (policy)", "", ""},
		{"granted by default", with("", nil), limitedPod("freeze"), "freeze (label temper.dev/limits)", "freeze", ""},
		{"the node's own", with("", nil), limitedPod("paced"), "paced (label temper.dev/limits)", "paced", ""},
		{"not granted by default", with("", nil), limitedPod("gap"), "paced (policy)", "", "asks for gap, which podLimits of policy p does not list"},
		{"granted by the policy", with("", []string{"gap"}), limitedPod("gap"), "gap (label temper.dev/limits)", "gap", ""},
		{"not granted by the policy", with("", []string{"gap"}), limitedPod("freeze"), "paced (policy)", "", "does not list"},
		{"none is granted", with("", []string{}), limitedPod("paced"), "paced (policy)", "", "does not list"},
		{"a node that keeps none", with("ignore", []string{"gap"}), limitedPod("gap"), "ignore (policy)", "", "no limits are kept on this node"},
		{"a pod may not have its limits ignored", with("", nil), limitedPod("ignore"), "paced (policy)", "", `"ignore" is none of paced, gap, freeze`},
		{"no mode", with("", nil), limitedPod(""), "paced (policy)", "", `"" is none of`},
		{"no policy", nil, limitedPod("paced"), " (no policy is for this node)", "", "no policy is for this node"},
	} {
		v := c.policy.Tier(c.pod, nil)
		if v.Limits.String() != c.want || v.Limits.OwnMode() != c.own || !strings.Contains(v.Refused, c.refused) || (c.refused == "") != (v.Refused == "") {
			t.Errorf("%s: %v, own %q, refused %q", c.what, v.Limits, v.Limits.OwnMode(), v.Refused)
		}
	}
}

// Whatever a pod's labels say, it has no mode of limits that its policy does not grant, and its tier is as without the label.
func TestNoModeIsHadUngranted(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	nodes := append([]string{"", config.LimitsIgnore}, config.PodLimits...)
	labels := append([]string{"", config.LimitsIgnore, "Gap"}, config.PodLimits...)
	for range 10_000 {
		var from v1alpha1.TierPolicy
		from.Spec.Limits = nodes[random.IntN(len(nodes))]
		if random.IntN(2) == 0 {
			from.Spec.PodLimits = config.PodLimits[random.IntN(len(config.PodLimits)+1):]
		}
		p := compile(t, from)
		pod := podOf("", nil, []string{"", "background", "system"}[random.IntN(3)])
		without := p.Tier(pod, nil)
		asks := labels[random.IntN(len(labels))]
		metav1.SetMetaDataLabel(&pod.ObjectMeta, v1alpha1.LimitsLabel, asks)
		with := p.Tier(pod, nil)
		own := with.Limits.OwnMode()
		if own != "" && (own != asks || !slices.Contains(p.podLimits(), own) || without.Limits.Mode == config.LimitsIgnore) {
			t.Fatalf("seed %d: label %q gives a pod %v by %+v", seed, asks, with.Limits, from.Spec)
		}
		if own == "" && (with.Limits != without.Limits || with.Refused == without.Refused) {
			t.Fatalf("seed %d: label %q is not granted, and yet %v, refused %q", seed, asks, with.Limits, with.Refused)
		}
		if with.Tier != without.Tier || with.Reason != without.Reason {
			t.Fatalf("seed %d: label %q takes a pod from %v to %v", seed, asks, without.Tier, with.Tier)
		}
	}
}
