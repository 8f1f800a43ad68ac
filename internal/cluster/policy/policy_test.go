package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
)

func compile(t *testing.T, p v1alpha1.TierPolicy) *Policy {
	t.Helper()
	compiled, err := Compile(&p)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func podOf(class string, priority *int32, label string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: class, Priority: priority}}
	if label != "" {
		pod.Labels = map[string]string{v1alpha1.TierLabel: label}
	}
	return pod
}

func TestTier(t *testing.T) {
	p := compile(t, v1alpha1.TierPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: v1alpha1.TierPolicySpec{
			Rules: []v1alpha1.TierRule{
				{Name: "low", Priority: &v1alpha1.PriorityRange{Max: new(int32(-1))}, Tier: "background"},
				{Name: "named", PriorityClassNames: []string{"gold", "silver"}, Tier: "critical"},
				{Name: "high", PriorityClassNames: []string{"bronze"}, Priority: &v1alpha1.PriorityRange{Min: new(int32(100)), Max: new(int32(200))}, Tier: "critical"},
			},
			QoS: v1alpha1.QoSTiers{BestEffort: "standard"},
		},
	})
	for _, c := range []struct {
		name    string
		policy  *Policy
		pod     *corev1.Pod
		tier    tier.Tier
		rule    string
		refused bool
		unknown bool
	}{
		{name: "a class by name", policy: p, pod: podOf("silver", new(int32(0)), ""), tier: tier.Critical, rule: "named"},
		{name: "the first rule decides", policy: p, pod: podOf("gold", new(int32(-5)), ""), tier: tier.Background, rule: "low"},
		{name: "the end of a range", policy: p, pod: podOf("", new(int32(200)), ""), tier: tier.Critical, rule: "high"},
		{name: "beyond a range", policy: p, pod: podOf("", new(int32(201)), ""), tier: tier.Standard},
		{name: "a name beside a range", policy: p, pod: podOf("bronze", new(int32(0)), ""), tier: tier.Critical, rule: "high"},
		{name: "no priority yet", policy: p, pod: podOf("gold", nil, ""), tier: tier.Critical, rule: "named", unknown: true},
		{name: "a lower label", policy: p, pod: podOf("gold", new(int32(0)), "background"), tier: tier.Background, rule: "named"},
		{name: "the same label", policy: p, pod: podOf("gold", new(int32(0)), "critical"), tier: tier.Critical, rule: "named"},
		{name: "a higher label", policy: p, pod: podOf("gold", new(int32(0)), "system"), tier: tier.Critical, rule: "named", refused: true},
		{name: "an unknown label", policy: p, pod: podOf("gold", new(int32(0)), "Background"), tier: tier.Critical, rule: "named", refused: true},
		{name: "what nodes need", policy: p, pod: podOf("system-node-critical", new(int32(2000001000)), ""), tier: tier.System},
		{name: "what clusters need", policy: p, pod: podOf("system-cluster-critical", new(int32(2000000000)), ""), tier: tier.Critical},
		{name: "no policy", pod: podOf("gold", new(int32(0)), ""), tier: tier.Standard},
		{name: "no policy, and a label", pod: podOf("gold", new(int32(0)), "background"), tier: tier.Background},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.policy.Tier(c.pod, nil)
			if v.Tier != c.tier || v.Rule != c.rule || (v.Refused != "") != c.refused || v.Unresolved != c.unknown || v.Reason == "" {
				t.Errorf("got %+v, want tier %v, rule %q, refused: %v, unresolved: %v", v, c.tier, c.rule, c.refused, c.unknown)
			}
		})
	}
}

// What a node or the cluster depends on is in background only if somebody says so.
func TestPodsOfTheSystem(t *testing.T) {
	p := compile(t, v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.TierPolicySpec{
		Rules: []v1alpha1.TierRule{{Name: "low", PriorityClassNames: []string{"tin"}, Priority: &v1alpha1.PriorityRange{Max: new(int32(-1))}, Tier: "background"}}}})
	lower := compile(t, v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.TierPolicySpec{QoS: v1alpha1.QoSTiers{BestEffort: "critical"}}})
	of := func(namespace, kind string, controller bool, pod *corev1.Pod) *corev1.Pod {
		pod.Namespace = namespace
		if kind != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "o", Controller: &controller}}
		}
		return pod
	}
	plain := func() *corev1.Pod { return podOf("", new(int32(0)), "") }
	const daemon = "of a DaemonSet, so not background (QoS class BestEffort)"
	for _, c := range []struct {
		name   string
		policy *Policy
		pod    *corev1.Pod
		in     *Namespace
		tier   tier.Tier
		reason string
	}{
		{name: "of nobody", policy: p, pod: of("shop", "", false, plain()), tier: tier.Background, reason: "QoS class BestEffort"},
		{name: "of a ReplicaSet", policy: p, pod: of("shop", "ReplicaSet", true, plain()), tier: tier.Background, reason: "QoS class BestEffort"},
		{name: "of a DaemonSet", policy: p, pod: of("shop", "DaemonSet", true, plain()), tier: tier.Standard, reason: daemon},
		{name: "owned by a DaemonSet that does not control it", policy: p, pod: of("shop", "DaemonSet", false, plain()), tier: tier.Background, reason: "QoS class BestEffort"},
		{name: "in kube-system", policy: p, pod: of("kube-system", "ReplicaSet", true, plain()), tier: tier.Standard,
			reason: "in namespace kube-system, so not background (QoS class BestEffort)"},
		{name: "in another namespace of Kubernetes", policy: p, pod: of("kube-flannel", "", false, plain()), tier: tier.Standard,
			reason: "in namespace kube-flannel, so not background (QoS class BestEffort)"},
		{name: "in a namespace of nearly that name", policy: p, pod: of("kubernetes-lab", "", false, plain()), tier: tier.Background, reason: "QoS class BestEffort"},
		{name: "the label says background", policy: p, pod: of("shop", "DaemonSet", true, podOf("", new(int32(0)), "background")),
			tier: tier.Background, reason: "label temper.dev/tier, below standard (" + daemon + ")"},
		{name: "the class does", policy: p, pod: of("shop", "DaemonSet", true, podOf("tin", new(int32(0)), "")), tier: tier.Background, reason: "PriorityClass tin"},
		{name: "the priority does", policy: p, pod: of("kube-system", "", false, podOf("", new(int32(-10)), "")), tier: tier.Background, reason: "priority -10"},
		{name: "the namespace does", policy: p, pod: of("shop", "DaemonSet", true, plain()),
			in:   &Namespace{Name: "shop", Labels: labels.Set{v1alpha1.HighestTierLabel: "background"}},
			tier: tier.Background, reason: "label temper.dev/highest-tier of namespace shop, below standard (" + daemon + ")"},
		{name: "a policy that gives more", policy: lower, pod: of("kube-system", "DaemonSet", true, plain()), tier: tier.Critical, reason: "QoS class BestEffort"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if v := c.policy.Tier(c.pod, c.in); v.Tier != c.tier || v.Reason != c.reason {
				t.Errorf("got %v by %q, want %v by %q", v.Tier, v.Reason, c.tier, c.reason)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	now := time.Now()
	make := func(name string, precedence int32, age time.Duration, pool string) *Policy {
		p := v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))},
			Spec: v1alpha1.TierPolicySpec{Precedence: precedence}}
		if pool != "" {
			p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": pool}}
		}
		return compile(t, p)
	}
	all := make("all", 0, time.Hour, "")
	unborn := compile(t, v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: "aaa"}})
	for _, c := range []struct {
		name string
		list []*Policy
		want string
	}{
		{"the one that is for the node", []*Policy{make("other", 9, 0, "b"), all}, "all"},
		{"the greatest precedence", []*Policy{all, make("high", 1, 0, "a"), make("low", -1, 2*time.Hour, "")}, "high"},
		{"the oldest of equals", []*Policy{all, make("older", 0, 2*time.Hour, "a"), make("newer", 0, 0, "")}, "older"},
		{"the one that is there already", []*Policy{all, unborn}, "all"},
		{"the first name of equals", []*Policy{all, make("aaa", 0, time.Hour, "")}, "aaa"},
	} {
		for range c.list { // in whatever order they come
			c.list = append(c.list[1:], c.list[0])
			if got := Select(c.list, labels.Set{"pool": "a"}); got.Name != c.want {
				t.Errorf("%s: %s", c.name, got.Name)
			}
		}
	}
	if got := Select([]*Policy{make("other", 0, 0, "b")}, nil); got != nil {
		t.Errorf("no policy is for the node: %s", got.Name)
	}
}

// Whatever policies and pods say: a label never raises a pod, and takes it to no other tier than its own.
func TestLabelsNeverRaise(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	tiers := []v1alpha1.Tier{"system", "critical", "standard", "background"}
	classes := []string{"", "a", "b", "c"}
	number := func() *int32 {
		if random.IntN(4) == 0 {
			return nil
		}
		return new(int32(random.IntN(21) - 10))
	}
	compiled := 0
	for range 20_000 {
		var from v1alpha1.TierPolicy
		for i := range random.IntN(5) {
			r := v1alpha1.TierRule{Name: fmt.Sprint(i), Tier: tiers[random.IntN(len(tiers))]}
			if random.IntN(2) == 0 {
				r.PriorityClassNames = classes[random.IntN(len(classes)):]
			}
			if random.IntN(2) == 0 {
				r.Priority = &v1alpha1.PriorityRange{Min: number(), Max: number()}
			}
			from.Spec.Rules = append(from.Spec.Rules, r)
		}
		p, err := Compile(&from)
		if err != nil {
			continue
		}
		compiled++
		pod := podOf(classes[random.IntN(len(classes))], number(), "")
		without := p.Tier(pod, nil)
		label := append(tiers, "", "urgent")[random.IntN(len(tiers)+2)]
		pod.Labels = map[string]string{v1alpha1.TierLabel: string(label)}
		with := p.Tier(pod, nil)
		asked, err := tier.Parse(string(label))
		if with.Tier != without.Tier && (err != nil || with.Tier != asked || with.Tier < without.Tier) {
			t.Fatalf("seed %d: label %q takes a pod from %v to %v", seed, label, without.Tier, with.Tier)
		}
		if (with.Refused != "") != (err != nil || asked < without.Tier) {
			t.Fatalf("seed %d: label %q on a %v pod: refused %q", seed, label, without.Tier, with.Refused)
		}
	}
	if compiled < 5_000 {
		t.Errorf("seed %d: only %d policies were valid", seed, compiled)
	}
}

func TestNamespaceLimitsItsPods(t *testing.T) {
	p := compile(t, v1alpha1.TierPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: v1alpha1.TierPolicySpec{
			Rules: []v1alpha1.TierRule{{Name: "gold", PriorityClassNames: []string{"gold"}, Tier: "critical"}},
			QoS:   v1alpha1.QoSTiers{BestEffort: "system"},
		},
	})
	const label = v1alpha1.HighestTierLabel
	for _, c := range []struct {
		name            string
		policy          *Policy
		pod             *corev1.Pod
		in              *Namespace
		tier            tier.Tier
		reason, refused string
	}{
		{name: "nothing is known", policy: p, pod: podOf("gold", nil, ""), tier: tier.Critical, reason: "PriorityClass gold"},
		{name: "no label", policy: p, pod: podOf("gold", nil, ""), in: &Namespace{Name: "shop"}, tier: tier.Standard,
			reason: "namespace shop, which has no label temper.dev/highest-tier, below critical (PriorityClass gold)"},
		{name: "no label, by QoS class", policy: p, pod: podOf("", nil, ""), in: &Namespace{Name: "shop"}, tier: tier.Standard, reason: "below system (QoS class BestEffort)"},
		{name: "allowed", policy: p, pod: podOf("gold", nil, ""), in: &Namespace{"shop", labels.Set{label: "critical"}}, tier: tier.Critical, reason: "PriorityClass gold"},
		{name: "more than allowed", policy: p, pod: podOf("", nil, ""), in: &Namespace{"shop", labels.Set{label: "critical"}},
			tier: tier.Critical, reason: "label temper.dev/highest-tier of namespace shop, below system (QoS class BestEffort)"},
		{name: "background is the highest", policy: p, pod: podOf("gold", nil, ""),
			in: &Namespace{"batch", labels.Set{label: "background"}}, tier: tier.Background, reason: "below critical"},
		{name: "without a policy, too", pod: podOf("gold", nil, ""), in: &Namespace{"batch", labels.Set{label: "background"}},
			tier: tier.Background, reason: "below standard (no policy is for this node)"},
		{name: "a label that is no tier", policy: p, pod: podOf("gold", nil, ""), in: &Namespace{"shop", labels.Set{label: "urgent"}},
			tier: tier.Standard, reason: "below critical", refused: `unknown tier "urgent"`},
		{name: "Kubernetes' own namespace", policy: p, pod: podOf("gold", nil, ""), in: &Namespace{Name: "kube-system"}, tier: tier.Critical, reason: "PriorityClass gold"},
		{name: "Kubernetes' own namespace, labelled", policy: p, pod: podOf("gold", nil, ""),
			in: &Namespace{"kube-system", labels.Set{label: "standard"}}, tier: tier.Standard, reason: "below critical"},
		{name: "Kubernetes' own class", policy: p, pod: podOf("system-node-critical", nil, ""), in: &Namespace{Name: "network"},
			tier: tier.System, reason: "PriorityClass system-node-critical"},
		{name: "the pod's label lowers further", policy: p, pod: podOf("gold", nil, "background"), in: &Namespace{Name: "shop"},
			tier: tier.Background, reason: "below standard (namespace shop"},
		{name: "the pod's label does not raise again", policy: p, pod: podOf("gold", nil, "critical"), in: &Namespace{Name: "shop"},
			tier: tier.Standard, reason: "below critical", refused: "asks for critical"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.policy.Tier(c.pod, c.in)
			if v.Tier != c.tier || !strings.Contains(v.Reason, c.reason) || !strings.Contains(v.Refused, c.refused) || (c.refused == "") != (v.Refused == "") {
				t.Errorf("got %v by %q, refused %q; want %v by %q, refused with %q", v.Tier, v.Reason, v.Refused, c.tier, c.reason, c.refused)
			}
		})
	}
}
