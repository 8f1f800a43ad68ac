//go:build kubernetes

package kubernetes

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/capacity/consolidate"
	"temper.dev/temper/internal/capacity/sample"
)

// What comes between a plan and its end, and what becomes of it. In each case nodes a and b are planned, and afterwards no
// node is cordoned by a plan that does not live, and no pod is without a node.
func TestConsolidationCases(t *testing.T) {
	c := consolidationCluster(t)
	protect := func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} }
	const cordonB, evictA, evictB = "cordoning node b", "node a: evicting", "node b: evicting"
	for _, tt := range []struct {
		name, when string
		change     func(*consolidate.Executor, context.CancelFunc)
		emptied    string // of the plan's nodes
		kept       map[string]string
		fails      string // in the error; "": there is none
		cordoned   string // beside those that are emptied
	}{
		{"nothing", "", nil, "a b", nil, "", "d"},
		{"a pod that forbids disruption, before its node is cordoned", cordonB, func(*consolidate.Executor, context.CancelFunc) {
			c.app("late", "100m", "b", protect)
		}, "a", map[string]string{"b": "do-not-disrupt"}, "", "d"},
		{"a pod that is protected before its eviction", evictB, func(*consolidate.Executor, context.CancelFunc) {
			c.must(c.Patch(t.Context(), c.podOf("b1"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"}}}`))))
		}, "a", map[string]string{"b": "do-not-disrupt"}, "", "d"},
		{"a pod without a controller", cordonB, func(*consolidate.Executor, context.CancelFunc) {
			pod := podOf(sample.Namespace, "bare", "")
			pod.Spec.NodeName = "b"
			c.must(c.Create(t.Context(), pod))
		}, "a", map[string]string{"b": "no controller"}, "", "d"},
		{"two budgets on one pod", evictB, func(*consolidate.Executor, context.CancelFunc) {
			c.budget("one", "b1", 1)
			c.budget("two", "b1", 1)
		}, "a", map[string]string{"b": "more than one PodDisruptionBudget"}, "", "d"},
		{"a budget that allows nothing", evictB, func(*consolidate.Executor, context.CancelFunc) { c.budget("none", "b1", 0) },
			"a", map[string]string{"b": "does not let pod"}, "", "d"},
		{"a node that never drains", evictB, func(*consolidate.Executor, context.CancelFunc) {
			c.must(c.Patch(t.Context(), c.podOf("b1"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["temper.dev/test"]}}`))))
		}, "a", map[string]string{"b": "has not ended"}, "", "d"},
		{"somebody's cordon, before ours", cordonB, func(*consolidate.Executor, context.CancelFunc) { c.cordonAs("kubectl-cordon", "b", true) },
			"", map[string]string{"a": "given up"}, "somebody has cordoned node b", "b d"},
		{"somebody ends our cordon", evictA, func(*consolidate.Executor, context.CancelFunc) { c.cordonAs("kubectl-uncordon", "b", false) },
			"a", map[string]string{"b": "somebody has uncordoned it"}, "", "d"},
		{"somebody ends our cordon, and cordons", evictA, func(*consolidate.Executor, context.CancelFunc) {
			c.cordonAs("kubectl-uncordon", "b", false)
			c.cordonAs("kubectl-cordon", "b", true)
		}, "a", map[string]string{"b": "somebody else has cordoned it"}, "", "b d"},
		{"somebody applies a cordon beside ours", evictA, func(*consolidate.Executor, context.CancelFunc) {
			c.must(c.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, client.RawPatch(types.ApplyPatchType,
				[]byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"},"spec":{"unschedulable":true}}`)), client.FieldOwner("gitops")))
		}, "a", map[string]string{"b": "somebody else has cordoned it"}, "", "b d"},
		{"a node that is enforced no more", evictA, func(*consolidate.Executor, context.CancelFunc) { c.report("b", metav1.ConditionFalse) },
			"a", map[string]string{"b": "not enforced"}, "", "d"},
		{"a clock that jumps ahead", evictA, func(e *consolidate.Executor, _ context.CancelFunc) {
			e.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
		}, "", map[string]string{"a": "has not said", "b": "has not said"}, "", "d"},
		{"a clock that jumps back", evictA, func(e *consolidate.Executor, _ context.CancelFunc) {
			e.Now = func() time.Time { return time.Now().Add(-24 * time.Hour) }
		}, "a b", nil, "", "d"},
		{"a node that is deleted", evictA, func(*consolidate.Executor, context.CancelFunc) { c.must(c.Delete(t.Context(), c.node("b"))) },
			"a", map[string]string{}, "", "d"},
		{"a pod that finds no node", evictA, func(*consolidate.Executor, context.CancelFunc) { c.cordonAs("kubectl-cordon", "c", true) },
			"", map[string]string{"a": "given up", "b": "given up"}, "has no node", "c d"},
		{"an interrupt", evictB, func(_ *consolidate.Executor, stop context.CancelFunc) { stop() },
			"a", map[string]string{"b": "canceled"}, "context canceled", "d"},
		{"somebody takes the Lease", evictA, func(e *consolidate.Executor, _ context.CancelFunc) {
			e.Timing.Pod = time.Minute // so that it waits for the pod until it has noticed
			c.budget("none", "a1", 0)
			c.budget("none-either", "a2", 0)
			c.must(c.Patch(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "temper-system", Name: consolidate.LeaseName}},
				client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"other"}}`))))
		}, "", map[string]string{"a": "could not be renewed", "b": "could not be renewed"}, "the Lease could not be renewed", "d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &consolidating{&realCluster{T: t, Client: c.Client}, c.config, c.kubeconfig, c.playing}
			c.fill()
			p := c.plan()
			if got := strings.Join(p.Names(), " "); got != "a b" {
				t.Fatalf("planned %s, want a b: %+v", got, p.Status.Kept)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			e := c.executor("one", nil)
			var once sync.Once
			e.Say = func(said consolidate.Progress) {
				if tt.when != "" && strings.HasPrefix(said.Doing, tt.when) {
					once.Do(func() { tt.change(e, stop) })
				}
			}
			o, err := e.Run(ctx, p)
			if o == nil {
				t.Fatal(err)
			}
			kept := map[string]string{}
			for _, k := range o.Kept {
				kept[k.Node] = strings.Join(k.Reasons, "; ")
			}
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("error %v, want %q", err, tt.fails)
			}
			if got := strings.Join(o.Emptied, " "); got != tt.emptied {
				t.Errorf("emptied %q, want %q; kept %v", got, tt.emptied, kept)
			}
			for node, words := range tt.kept {
				if !strings.Contains(kept[node], words) {
					t.Errorf("node %s is kept by %q, want %q", node, kept[node], words)
				}
			}
			if len(kept) != len(tt.kept) {
				t.Errorf("kept %v, want %v", kept, slices.Sorted(maps.Keys(tt.kept)))
			}
			c.running()
			all, noted := c.cordoned()
			if !slices.Equal(noted, o.Emptied) {
				t.Errorf("noted as emptied are %v, want %v", noted, o.Emptied)
			}
			want := append(strings.Fields(tt.cordoned), o.Emptied...)
			if slices.Sort(want); !slices.Equal(all, want) {
				t.Errorf("cordoned are %v, want %v", all, want)
			}
			c.empty()
		})
	}
}

// What is refused before anything is changed.
func TestConsolidationRefuses(t *testing.T) {
	c := consolidationCluster(t)
	for _, tt := range []struct {
		name   string
		change func(*consolidate.Plan)
		want   string
	}{
		{"an approval for other nodes than the plan lists", func(p *consolidate.Plan) { p.Spec.Nodes = p.Spec.Nodes[:1] }, "stands for other nodes"},
		{"an approval in which somebody has changed a machine", func(p *consolidate.Plan) { p.Spec.Nodes[0].Machine = "other" }, "stands for other nodes"},
		{"a plan for a node that was made anew", func(*consolidate.Plan) {
			node := c.node("a")
			c.must(c.Delete(t.Context(), node))
			node.ResourceVersion, node.UID = "", ""
			c.make(node.DeepCopy(), node)
		}, "gone, or were made anew: a"},
		{"a plan that does not hold any more", func(*consolidate.Plan) { c.budget("none", "b1", 0) }, "does not hold any more: node b: "},
		{"a node that is not enforced", func(*consolidate.Plan) { c.report("a", metav1.ConditionFalse) }, "not enforced"},
		{"a cluster with Karpenter", func(*consolidate.Plan) {
			c.must(c.Patch(t.Context(), c.node("c"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"karpenter.sh/nodepool":"default"}}}`))))
		}, "Karpenter (node c is of its NodePool default)"},
		{"a cluster with an autoscaler", func(*consolidate.Plan) {
			c.must(c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-autoscaler-status"}}))
		}, "the cluster-autoscaler"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &consolidating{&realCluster{T: t, Client: c.Client}, c.config, c.kubeconfig, c.playing}
			c.fill()
			p := c.plan()
			tt.change(p)
			o, err := c.executor("one", nil).Run(t.Context(), p)
			if o != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v and %v, want %q", o, err, tt.want)
			}
			if all, _ := c.cordoned(); !slices.Equal(all, []string{"d"}) {
				t.Errorf("cordoned are %v, want d", all)
			}
			c.empty()
		})
	}
}

// Who may not write the Lease is told that, by the API server's own words.
func TestConsolidationNamesWhatMayNotBeWritten(t *testing.T) {
	c := consolidationCluster(t)
	meta := metav1.ObjectMeta{Namespace: "temper-system", Name: "reads-leases"}
	c.must(c.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get"}}}}))
	c.must(c.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}}}))
	for _, row := range []struct {
		name  string
		there bool
		want  string
	}{
		{"no Lease yet", false, `cannot be written: leases.coordination.k8s.io is forbidden: User "reader" cannot create resource "leases"`},
		{"a Lease that nobody holds", true, `cannot be written: leases.coordination.k8s.io "temper-consolidate" is forbidden: User "reader" cannot update resource "leases"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: consolidate.LeaseName}}
			if row.there {
				c.must(c.Create(t.Context(), lease))
				defer func() { c.must(c.Delete(context.WithoutCancel(t.Context()), lease)) }()
			}
			e := c.executor("reader", func(next http.RoundTripper) http.RoundTripper { return asReader{next} })
			e.Timing.Lease = time.Second
			if _, err := e.Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v; want an error with %q", err, row.want)
			}
		})
	}
}

// asReader makes a user of who asks.
type asReader struct{ http.RoundTripper }

func (r asReader) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Impersonate-User", "reader")
	return r.RoundTripper.RoundTrip(request)
}
