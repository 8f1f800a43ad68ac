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
		name    string
		policy  *Policy
		pod     *corev1.Pod
		want    string
		own     string
		refused string
	}{
		{name: "no label", policy: with("", nil), pod: &corev1.Pod{}, want: "paced (policy)"},
		{name: "no label, another mode of the node", policy: with("gap", nil), pod: &corev1.Pod{}, want: "gap (policy)"},
		{name: "granted by default", policy: with("", nil), pod: limitedPod("freeze"), want: "freeze (label temper.dev/limits)", own: "freeze"},
		{name: "the node's own", policy: with("", nil), pod: limitedPod("paced"), want: "paced (label temper.dev/limits)", own: "paced"},
		{name: "not granted by default", policy: with("", nil), pod: limitedPod("gap"), want: "paced (policy)",
			refused: "asks for gap, which podLimits of policy p does not list"},
		{name: "granted by the policy", policy: with("", []string{"gap"}), pod: limitedPod("gap"), want: "gap (label temper.dev/limits)", own: "gap"},
		{name: "not granted by the policy", policy: with("", []string{"gap"}), pod: limitedPod("freeze"), want: "paced (policy)", refused: "does not list"},
		{name: "none is granted", policy: with("", []string{}), pod: limitedPod("paced"), want: "paced (policy)", refused: "does not list"},
		{name: "a node that keeps none", policy: with("ignore", []string{"gap"}), pod: limitedPod("gap"), want: "ignore (policy)", refused: "no limits are kept on this node"},
		{name: "a pod may not have its limits ignored", policy: with("", nil), pod: limitedPod("ignore"), want: "paced (policy)",
			refused: `"ignore" is none of paced, gap, freeze`},
		{name: "no mode", policy: with("", nil), pod: limitedPod(""), want: "paced (policy)", refused: `"" is none of`},
		{name: "no policy", pod: limitedPod("paced"), want: " (no policy is for this node)", refused: "no policy is for this node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.policy.Tier(c.pod, nil)
			if v.Limits.String() != c.want || v.Limits.OwnMode() != c.own || !strings.Contains(v.Refused, c.refused) || (c.refused == "") != (v.Refused == "") {
				t.Errorf("got %v, own %q, refused %q; want %s, own %q, refused with %q", v.Limits, v.Limits.OwnMode(), v.Refused, c.want, c.own, c.refused)
			}
		})
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
