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
		what    string
		policy  *Policy
		pod     *corev1.Pod
		tier    tier.Tier
		rule    string
		refused bool
		unknown bool
	}{
		{"a class by name", p, podOf("silver", new(int32(0)), ""), tier.Critical, "named", false, false},
		{"the first rule decides", p, podOf("gold", new(int32(-5)), ""), tier.Background, "low", false, false},
		{"the end of a range", p, podOf("", new(int32(200)), ""), tier.Critical, "high", false, false},
		{"beyond a range", p, podOf("", new(int32(201)), ""), tier.Standard, "", false, false},
		{"a name beside a range", p, podOf("bronze", new(int32(0)), ""), tier.Critical, "high", false, false},
		{"no priority yet", p, podOf("gold", nil, ""), tier.Critical, "named", false, true},
		{"a lower label", p, podOf("gold", new(int32(0)), "background"), tier.Background, "named", false, false},
		{"the same label", p, podOf("gold", new(int32(0)), "critical"), tier.Critical, "named", false, false},
		{"a higher label", p, podOf("gold", new(int32(0)), "system"), tier.Critical, "named", true, false},
		{"an unknown label", p, podOf("gold", new(int32(0)), "Background"), tier.Critical, "named", true, false},
		{"what nodes need", p, podOf("system-node-critical", new(int32(2000001000)), ""), tier.System, "", false, false},
		{"what clusters need", p, podOf("system-cluster-critical", new(int32(2000000000)), ""), tier.Critical, "", false, false},
		{"no policy", nil, podOf("gold", new(int32(0)), ""), tier.Standard, "", false, false},
		{"no policy, and a label", nil, podOf("gold", new(int32(0)), "background"), tier.Background, "", false, false},
	} {
		v := c.policy.Tier(c.pod, nil)
		if v.Tier != c.tier || v.Rule != c.rule || (v.Refused != "") != c.refused || v.Unresolved != c.unknown || v.Reason == "" {
			t.Errorf("%s: %+v", c.what, v)
		}
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
		what   string
		policy *Policy
		pod    *corev1.Pod
		in     *Namespace
		tier   tier.Tier
		reason string
	}{
		{"of nobody", p, of("shop", "", false, plain()), nil, tier.Background, "QoS class BestEffort"},
		{"of a ReplicaSet", p, of("shop", "ReplicaSet", true, plain()), nil, tier.Background, "QoS class BestEffort"},
		{"of a DaemonSet", p, of("shop", "DaemonSet", true, plain()), nil, tier.Standard, daemon},
		{"owned by a DaemonSet that does not control it", p, of("shop", "DaemonSet", false, plain()), nil, tier.Background, "QoS class BestEffort"},
		{"in kube-system", p, of("kube-system", "ReplicaSet", true, plain()), nil, tier.Standard, "in namespace kube-system, so not background (QoS class BestEffort)"},
		{"in another namespace of Kubernetes", p, of("kube-flannel", "", false, plain()), nil, tier.Standard, "in namespace kube-flannel, so not background (QoS class BestEffort)"},
		{"in a namespace of nearly that name", p, of("kubernetes-lab", "", false, plain()), nil, tier.Background, "QoS class BestEffort"},
		{"the label says background", p, of("shop", "DaemonSet", true, podOf("", new(int32(0)), "background")), nil, tier.Background, "label temper.dev/tier, below standard (" + daemon + ")"},
		{"the class does", p, of("shop", "DaemonSet", true, podOf("tin", new(int32(0)), "")), nil, tier.Background, "PriorityClass tin"},
		{"the priority does", p, of("kube-system", "", false, podOf("", new(int32(-10)), "")), nil, tier.Background, "priority -10"},
		{"the namespace does", p, of("shop", "DaemonSet", true, plain()), &Namespace{Name: "shop", Labels: labels.Set{v1alpha1.HighestTierLabel: "background"}}, tier.Background,
			"label temper.dev/highest-tier of namespace shop, below standard (" + daemon + ")"},
		{"a policy that gives more", lower, of("kube-system", "DaemonSet", true, plain()), nil, tier.Critical, "QoS class BestEffort"},
	} {
		if v := c.policy.Tier(c.pod, c.in); v.Tier != c.tier || v.Reason != c.reason {
			t.Errorf("%s: got %v by %q, want %v by %q", c.what, v.Tier, v.Reason, c.tier, c.reason)
		}
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
		what string
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
				t.Errorf("%s: %s", c.what, got.Name)
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
		what            string
		policy          *Policy
		pod             *corev1.Pod
		in              *Namespace
		tier            tier.Tier
		reason, refused string
	}{
		{"nothing is known", p, podOf("gold", nil, ""), nil, tier.Critical, "PriorityClass gold", ""},
		{"no label", p, podOf("gold", nil, ""), &Namespace{Name: "shop"}, tier.Standard,
			"namespace shop, which has no label temper.dev/highest-tier, below critical (PriorityClass gold)", ""},
		{"no label, by QoS class", p, podOf("", nil, ""), &Namespace{Name: "shop"}, tier.Standard, "below system (QoS class BestEffort)", ""},
		{"allowed", p, podOf("gold", nil, ""), &Namespace{"shop", labels.Set{label: "critical"}}, tier.Critical, "PriorityClass gold", ""},
		{"more than allowed", p, podOf("", nil, ""), &Namespace{"shop", labels.Set{label: "critical"}}, tier.Critical,
			"label temper.dev/highest-tier of namespace shop, below system (QoS class BestEffort)", ""},
		{"background is the highest", p, podOf("gold", nil, ""), &Namespace{"batch", labels.Set{label: "background"}}, tier.Background, "below critical", ""},
		{"without a policy, too", nil, podOf("gold", nil, ""), &Namespace{"batch", labels.Set{label: "background"}}, tier.Background, "below standard (no policy is for this node)", ""},
		{"a label that is no tier", p, podOf("gold", nil, ""), &Namespace{"shop", labels.Set{label: "urgent"}}, tier.Standard, "below critical", `unknown tier "urgent"`},
		{"Kubernetes' own namespace", p, podOf("gold", nil, ""), &Namespace{Name: "kube-system"}, tier.Critical, "PriorityClass gold", ""},
		{"Kubernetes' own namespace, labelled", p, podOf("gold", nil, ""), &Namespace{"kube-system", labels.Set{label: "standard"}}, tier.Standard, "below critical", ""},
		{"Kubernetes' own class", p, podOf("system-node-critical", nil, ""), &Namespace{Name: "network"}, tier.System, "PriorityClass system-node-critical", ""},
		{"the pod's label lowers further", p, podOf("gold", nil, "background"), &Namespace{Name: "shop"}, tier.Background, "below standard (namespace shop", ""},
		{"the pod's label does not raise again", p, podOf("gold", nil, "critical"), &Namespace{Name: "shop"}, tier.Standard, "below critical", "asks for critical"},
	} {
		v := c.policy.Tier(c.pod, c.in)
		if v.Tier != c.tier || !strings.Contains(v.Reason, c.reason) || !strings.Contains(v.Refused, c.refused) || (c.refused == "") != (v.Refused == "") {
			t.Errorf("%s: %v by %q, refused %q", c.what, v.Tier, v.Reason, v.Refused)
		}
	}
}
