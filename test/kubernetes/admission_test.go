//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/explain"
	"temper.dev/temper/internal/cluster/policy"
)

const highestTier = v1alpha1.HighestTierLabel

// inForce awaits the shipped admission policy.
func inForce(t *testing.T) {
	t.Helper()
	eventually(t, "a critical pod is refused", func() bool { return tryOut(t, podOf("default", "p", "temper-critical")) != nil })
}

func TestWhoMayAskForCritical(t *testing.T) {
	inForce(t)
	namespace(t, "shop", map[string]string{highestTier: "critical"})
	namespace(t, "batch", map[string]string{highestTier: "background"})
	namespace(t, "typo", map[string]string{highestTier: "urgent"})
	for _, c := range []struct{ namespace, class, refused string }{
		{"default", "", ""},
		{"default", "temper-background", ""},
		{"default", "temper-critical", "by TierPolicy default pods of PriorityClass temper-critical are critical, and pods of namespace default at most standard; " +
			"use another PriorityClass, or have the namespace labelled temper.dev/highest-tier: critical"},
		{"kube-system", "temper-critical", ""},
		{"shop", "temper-critical", ""},
		{"batch", "temper-background", ""},
		{"batch", "", ""},
		{"batch", "temper-critical", "at most background"},
		{"typo", "", ""},
		{"typo", "temper-critical", "(urgent is no tier)"},
		{"default", "system-node-critical", ""},
	} {
		err := tryOut(t, podOf(c.namespace, "p", c.class))
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("class %q in %s: %v", c.class, c.namespace, err)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("class %q in %s: the API server says %v, not %q", c.class, c.namespace, err, c.refused)
		}
	}
	lowered := podOf("default", "p", "temper-critical")
	lowered.Labels = map[string]string{v1alpha1.TierLabel: "background"}
	if tryOut(t, lowered) == nil {
		t.Error("a label that can be taken away later makes a critical pod pass")
	}
}

type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

func TestKubernetesOwnClassesWarn(t *testing.T) {
	var said warnings
	config := rest.CopyConfig(server.Config)
	config.WarningHandler = &said
	hearing, err := client.New(config, client.Options{Scheme: explain.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace(t, "network", labels.Set{highestTier: "critical"})
	try := func(namespace, class string) string {
		said = nil
		if err := hearing.Create(t.Context(), podOf(namespace, "p", class), client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		return strings.Join(said, "\n")
	}
	const warning = "is not labelled"
	eventually(t, "a pod of Kubernetes' own class is warned of", func() bool { return strings.Contains(try("default", "system-node-critical"), warning) })
	for _, c := range []struct {
		namespace, class string
		warned           bool
	}{
		{"kube-system", "system-node-critical", false},
		{"temper-system", "system-node-critical", false},
		{"network", "system-cluster-critical", false},
		{"network", "system-node-critical", true},
		{"default", "system-cluster-critical", true},
		{"default", "temper-background", false},
	} {
		if text := try(c.namespace, c.class); strings.Contains(text, warning) != c.warned {
			t.Errorf("class %s in %s: %q", c.class, c.namespace, text)
		}
	}
}

// The API server refuses a pod whose class is named by the rule that decides, if internal/cluster/policy would take the pod down
// to its namespace's highest tier, and no other.
func TestAdmissionAgreesWithPolicy(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	inForce(t)
	standard := defaultPolicy(t)
	values := map[string]int32{"": 0, "low": -5, "high": 7, "system-cluster-critical": 2000000000}
	for name, value := range values {
		if name != "" && !strings.HasPrefix(name, "system-") {
			class(t, name, value)
		}
	}
	spaces := map[string]*policy.Namespace{"default": {Name: "default"}, "kube-system": {Name: "kube-system"}}
	for _, highest := range append(tiers, "urgent") {
		name := "at-most-" + string(highest)
		its := labels.Set{highestTier: string(highest)}
		namespace(t, name, its)
		spaces[name] = &policy.Namespace{Name: name, Labels: its}
	}
	from := &v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: "random"}}
	create(t, from)
	namespaces := slices.Sorted(maps.Keys(spaces))
	classes := slices.Sorted(maps.Keys(values))
	refused := 0
	const rounds, tries = 25, 30
	for round := range rounds {
		marker := fmt.Sprintf("marker-%d", round)
		class(t, marker, 0)
		from.Spec = randomSpec(random, classes, slices.Sorted(maps.Values(values)))
		from.Spec.Rules = slices.Insert(from.Spec.Rules, 0, v1alpha1.TierRule{Name: "marker", PriorityClassNames: []string{marker}, Tier: "critical"})
		if err := cluster.Update(t.Context(), from); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p, err := policy.Compile(from)
		if err != nil {
			t.Fatalf("seed %d: the API server takes what Compile refuses: %v", seed, err)
		}
		eventually(t, "the changed policy is in force", func() bool {
			err := tryOut(t, podOf("default", "p", marker))
			return err != nil && strings.Contains(err.Error(), "TierPolicy random")
		})
		for range tries {
			pod := podOf(pick(random, namespaces), "p", pick(random, classes))
			randomResources(random, pod)
			err := tryOut(t, pod)
			pod.Spec.Priority = new(values[pod.Spec.PriorityClassName])
			above := slices.ContainsFunc([]policyOf{{p, from}, standard}, func(p policyOf) bool { return p.refuses(pod, spaces[pod.Namespace]) })
			if (err != nil) != above {
				t.Fatalf("seed %d, round %d: class %q in %s, with %v: the API server says %v; the policy's tier is %v by %s",
					seed, round, pod.Spec.PriorityClassName, pod.Namespace, pod.Spec.Containers[0].Resources, err, p.Tier(pod, nil).Tier, p.Tier(pod, nil).Reason)
			}
			if above {
				refused++
			}
		}
	}
	if refused < rounds*tries/25 || refused > rounds*tries*9/10 {
		t.Errorf("seed %d: %d of %d pods were refused: that tries out too little", seed, refused, rounds*tries)
	}
}

// What takes more than its budget to evaluate is not evaluated, and refuses nobody: the largest policy that the API server
// takes is within it.
func TestTheLargestPolicyIsEvaluated(t *testing.T) {
	const rules, names, length, last = 64, 64, 253, "named-last"
	class(t, last, 0)
	largest := &v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: "largest"}}
	for r := range rules {
		rule := v1alpha1.TierRule{Name: fmt.Sprintf("%063d", r), Tier: "critical"}
		for n := range names {
			rule.PriorityClassNames = append(rule.PriorityClassNames, fmt.Sprintf("%0*d", length, r*names+n))
		}
		largest.Spec.Rules = append(largest.Spec.Rules, rule)
	}
	largest.Spec.Rules[rules-1].PriorityClassNames[names-1] = last
	create(t, largest)
	eventually(t, "a pod of the class that is named last is refused", func() bool {
		err := tryOut(t, podOf("default", "p", last))
		return err != nil && strings.Contains(err.Error(), "by TierPolicy largest")
	})
}

var tiers = []v1alpha1.Tier{"background", "standard", "critical", "system"}

// policyOf is a policy, and what it was compiled from.
type policyOf struct {
	*policy.Policy
	from *v1alpha1.TierPolicy
}

func (p policyOf) refuses(pod *corev1.Pod, in *policy.Namespace) bool {
	free, held := p.Tier(pod, nil), p.Tier(pod, in)
	rule := slices.IndexFunc(p.from.Spec.Rules, func(r v1alpha1.TierRule) bool { return r.Name == free.Rule })
	return free.Tier != held.Tier && rule >= 0 && slices.Contains(p.from.Spec.Rules[rule].PriorityClassNames, pod.Spec.PriorityClassName)
}

func defaultPolicy(t *testing.T) policyOf {
	t.Helper()
	var from v1alpha1.TierPolicy
	if err := cluster.Get(t.Context(), client.ObjectKey{Name: "default"}, &from); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(&from)
	if err != nil {
		t.Fatal(err)
	}
	return policyOf{p, &from}
}

// changeDefaultPolicy changes it until the test ends.
func changeDefaultPolicy(t *testing.T, change func(*v1alpha1.TierPolicySpec)) {
	t.Helper()
	p := defaultPolicy(t).from
	before := p.DeepCopy()
	change(&p.Spec)
	if err := cluster.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		before.ResourceVersion = p.ResourceVersion
		if err := cluster.Update(context.Background(), before); err != nil {
			t.Error(err)
		}
	})
}

func randomSpec(random *rand.Rand, classes []string, values []int32) v1alpha1.TierPolicySpec {
	spec := v1alpha1.TierPolicySpec{QoS: v1alpha1.QoSTiers{Guaranteed: pick(random, tiers), Burstable: pick(random, tiers), BestEffort: pick(random, tiers)}}
	for i := range 1 + random.IntN(4) {
		r := v1alpha1.TierRule{Name: fmt.Sprint("r", i), Tier: pick(random, tiers)}
		for range 2 {
			if name := pick(random, classes); name != "" && !slices.Contains(r.PriorityClassNames, name) {
				r.PriorityClassNames = append(r.PriorityClassNames, name)
			}
		}
		// At the classes' own values and beside them: what is compared wrongly shows there.
		if bound := pick(random, values) + int32(random.IntN(3)-1); r.PriorityClassNames == nil || random.IntN(2) == 0 {
			r.Priority = pick(random, []*v1alpha1.PriorityRange{{Min: &bound}, {Max: &bound}, {Min: &bound, Max: new(bound + 5)}})
		}
		spec.Rules = append(spec.Rules, r)
	}
	return spec
}

// randomResources gives a pod one of the three QoS classes.
func randomResources(random *rand.Rand, pod *corev1.Pod) {
	some := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	pod.Spec.Containers[0].Resources = pick(random, []corev1.ResourceRequirements{{}, {Requests: some}, {Requests: some, Limits: some}})
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }
