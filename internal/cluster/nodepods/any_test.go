package nodepods

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/policy"
	"temper.dev/temper/internal/node/agent"
)

// seeded gives a source of random numbers, and prints its seed if the test fails.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// anySpec is a policy's, valid or not.
func anySpec(random *rand.Rand) v1alpha1.TierPolicySpec {
	word := func(good ...string) string {
		return pick(random, append(good, "", "", "\xff", "Critical", strings.Repeat("x", 300))...)
	}
	spec := v1alpha1.TierPolicySpec{Limits: word("paced", "gap", "ignore"), Loans: word("gaps", "never"), SMT: word("share"),
		QoS: v1alpha1.QoSTiers{BestEffort: v1alpha1.Tier(word("background", "standard"))}}
	if random.IntN(4) == 0 {
		spec.PodLimits = []string{word("gap"), word("freeze")}
	}
	if random.IntN(4) == 0 {
		spec.ReservationPercent = new(int32(random.IntN(2000) - 500))
	}
	if random.IntN(4) == 0 {
		spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{word("pool"): word("a b", "a")}}
	}
	for i := range random.IntN(3) {
		rule := v1alpha1.TierRule{Name: fmt.Sprint("r", i), Tier: v1alpha1.Tier(pick(random, "critical", "system", "standard", "urgent"))}
		if random.IntN(8) > 0 {
			rule.PriorityClassNames = []string{word("gold", "gold", "gold")}
		}
		if random.IntN(2) == 0 {
			rule.Priority = &v1alpha1.PriorityRange{Min: new(int32(random.IntN(100) - 50)), Max: new(int32(random.IntN(100)))}
		}
		spec.Rules = append(spec.Rules, rule)
	}
	return spec
}

// Whatever becomes of policies: of each the last that was valid counts, and one that is not is told.
func TestAnyPolicies(t *testing.T) {
	random := seeded(t)
	var counts map[string]*policy.Policy
	valid := map[string]v1alpha1.TierPolicySpec{} // the last of each name
	kept, refused := 0, 0
	for range 5000 {
		var list []v1alpha1.TierPolicy
		for _, name := range []string{"a", "b", "c"} {
			if random.IntN(10) > 0 {
				list = append(list, v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: anySpec(random)})
			}
		}
		before := counts
		var problems []string
		counts, problems = compile(list, before)
		want := map[string]v1alpha1.TierPolicySpec{}
		invalid := 0
		for i, p := range list {
			_, err := policy.Compile(&list[i])
			old, known := valid[p.Name]
			switch {
			case err == nil:
				want[p.Name] = p.Spec
				continue
			case known:
				want[p.Name] = old
				kept++
				if counts[p.Name] != before[p.Name] {
					t.Fatalf("policy %s is not what it was before", p.Name)
				}
			default:
				refused++
			}
			invalid++
		}
		if !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(counts))) || len(problems) != invalid {
			t.Fatalf("%v count, %v should; problems %q", slices.Sorted(maps.Keys(counts)), slices.Sorted(maps.Keys(want)), problems)
		}
		valid = want
		policy.Select(slices.Collect(maps.Values(counts)), labels.Set{"pool": "a"})
	}
	if kept < 500 || refused < 100 {
		t.Errorf("only %d invalid policies had been valid before, and only %d had not", kept, refused)
	}
}

// anyPod is a pod that somebody could have the API server keep, and some that nobody could.
func anyPod(random *rand.Rand, i int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(random, "default", "kube-system", "shop", ""), Name: fmt.Sprint(i),
		UID: types.UID(pick(random, uid, otherUID, "", fmt.Sprintf("%032x", i)))}}
	if random.IntN(2) == 0 {
		pod.Annotations = map[string]string{mirrorAnnotation: "", hashAnnotation: pick(random, hash, uid, "", "../../x", strings.Repeat("a", 1000))}
	}
	if random.IntN(2) == 0 {
		pod.Labels = map[string]string{v1alpha1.TierLabel: pick(random, "background", "system", "", "\xff"), v1alpha1.LimitsLabel: pick(random, "gap", "paced", "ignore", "")}
	}
	pod.Spec.PriorityClassName = pick(random, "", "gold", "system-node-critical")
	if random.IntN(2) == 0 {
		pod.Spec.Priority = new(int32(random.IntN(100) - 50))
	}
	pod.Status.Phase = pick(random, "", corev1.PodRunning, corev1.PodFailed)
	return pod
}

// anyTree makes a node's cgroups of words that matter.
func anyTree(t *testing.T, random *rand.Rand) tree {
	t.Helper()
	root := fixture.Tree(t)
	tops := []string{"kubepods", "kubepods.slice", "x/kubelet-kubepods.slice"}
	classes := []string{"", "burstable", "kubepods-besteffort.slice"}
	pods := []string{"pod" + uid, "pod" + hash, "kubepods-pod" + slice + ".slice"}
	words := slices.Concat(tops, classes, pods, []string{"user.slice", "pod", "pod..", ".slice", "-pod.slice"})
	for range random.IntN(8) {
		cg := path.Join(pick(random, tops...), pick(random, classes...), pick(random, pods...))
		if random.IntN(2) == 0 {
			cg = path.Join(pick(random, words...), pick(random, words...), pick(random, words...), pick(random, words...))
		}
		if err := os.MkdirAll(root.Cgroup(cg), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return tree{root: root}
}

// Whatever pods and cgroups there are: each member is a pod's cgroup in a kubelet's tree, has the tier and the limits of the
// pod that it was granted to, and is there once.
func TestAnyPodsAndCgroups(t *testing.T) {
	random := seeded(t)
	members := 0
	for range 200 {
		p, err := policy.Compile(&v1alpha1.TierPolicy{Spec: v1alpha1.TierPolicySpec{PodLimits: []string{"gap"},
			Rules: []v1alpha1.TierRule{{Name: "gold", PriorityClassNames: []string{"gold"}, Tier: "critical"}}}})
		if err != nil {
			t.Fatal(err)
		}
		var pods []corev1.Pod
		for i := range random.IntN(20) {
			pods = append(pods, *anyPod(random, i))
		}
		k := &Known{Pods: map[string]Pod{}}
		k.addPods(pods, p, map[string]labels.Set{"default": {v1alpha1.HighestTierLabel: pick(random, "critical", "urgent")}})
		s := Source{known: k, tree: anyTree(t, random)}
		s.unknown = map[string]time.Time{}
		s.tree.find()
		var w agent.Wanted
		s.add(&w, s.tree.pods(s.tree.classes()))
		seen := map[string]bool{}
		for _, m := range w.Members {
			members++
			id := podOf(path.Base(m.Cgroup))
			granted := k.Pods[id]
			if id == "" || seen[m.Cgroup] || !strings.Contains(m.Cgroup, "kubepods") || strings.HasPrefix(m.Cgroup, "/user.slice") {
				t.Fatalf("%s is a member, as pod %q", m.Cgroup, id)
			}
			if m.Pod != granted.Name || m.Tier != granted.Tier || m.Limits != granted.Limits || m.Limits != "" && m.Limits != "gap" {
				t.Fatalf("%+v of pod %+v", m, granted)
			}
			seen[m.Cgroup] = true
		}
		for id, pod := range k.Pods {
			if pod.Tier == tier.System && !strings.HasPrefix(pod.Name, "kube-system/") && !strings.Contains(pod.Reason, "system-node-critical") {
				t.Fatalf("%s is %+v", id, pod)
			}
		}
	}
	if members < 100 {
		t.Errorf("only %d members came of it", members)
	}
}
