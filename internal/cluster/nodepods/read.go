package nodepods

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/policy"
	"temper.dev/temper/internal/node/agent"
)

// reader makes what the agent knows of what the cluster has.
type reader struct {
	*cluster
	node     string
	policies map[string]*policy.Policy // by name: the last of each that was valid
	known    *Known
}

// read is what is known now; nil until all that is watched has been seen once.
func (r *reader) read(ctx context.Context) (*Known, error) {
	for object := range kinds(r.node) {
		informer, err := r.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		if !informer.HasSynced() {
			return nil, nil
		}
	}
	r.mu.Lock()
	stale := r.stale
	r.stale = false // before reading: what changes meanwhile makes it stale again
	r.mu.Unlock()
	if !stale {
		return r.known, nil
	}
	k, err := r.look(ctx)
	if err != nil {
		r.mu.Lock()
		r.stale = true // for the next look, which somebody else asks for
		r.mu.Unlock()
		return nil, err
	}
	r.known = k
	return k, nil
}

func (r *reader) look(ctx context.Context) (*Known, error) {
	k := &Known{Pods: map[string]Pod{}}
	nodes, err := r.labels(ctx, "Node")
	if err != nil {
		return nil, err
	}
	namespaces, err := r.labels(ctx, "Namespace")
	if err != nil {
		return nil, err
	}
	mine, exists := nodes[r.node]
	applies, err := r.policy(ctx, mine, k)
	if err != nil {
		return nil, err
	}
	if applies != nil {
		k.Policy = applies.Name
		k.Loans, k.SMT, k.Limits = applies.Modes()
		k.Percent = applies.Reservation()
	}
	switch {
	case !exists: // nobody knows its labels: safe mode may be among them
		k.Off = &agent.Off{Reason: agent.NoNode, Message: fmt.Sprintf("the API server has no node %s; is that this node's name?", r.node)}
	case safeModeAsked(mine):
		k.Off = &agent.Off{Reason: agent.OffByNode, Message: fmt.Sprintf("safe mode: node %s has the label %s", r.node, v1alpha1.SafeModeLabel)}
	case applies == nil:
		k.Off = &agent.Off{Reason: agent.NoPolicy, Message: fmt.Sprintf("no TierPolicy selects node %s", r.node)}
	}
	return k, r.pods(ctx, applies, namespaces, k)
}

// policy is the TierPolicy that applies to the node. One that was changed into something not valid stays as it was.
func (r *reader) policy(ctx context.Context, node labels.Set, k *Known) (*policy.Policy, error) {
	var list v1alpha1.TierPolicyList
	if err := r.cache.List(ctx, &list); err != nil {
		return nil, err
	}
	r.policies, k.Problems = compile(list.Items, r.policies)
	return policy.Select(slices.Collect(maps.Values(r.policies)), node), nil
}

// compile gives the policies that count, by name: of each the last that was valid, which was may have.
func compile(list []v1alpha1.TierPolicy, was map[string]*policy.Policy) (now map[string]*policy.Policy, problems []string) {
	now = map[string]*policy.Policy{}
	for i := range list {
		name := list[i].Name
		p, err := policy.Compile(&list[i])
		if err != nil {
			p = was[name]
			problems = append(problems, outcomeOf(p, err))
		}
		if p != nil {
			now[name] = p
		}
	}
	slices.Sort(problems)
	return now, problems
}

func outcomeOf(before *policy.Policy, err error) string {
	if before == nil {
		return fmt.Sprintf("%v: it counts as not there", err)
	}
	return fmt.Sprintf("%v: it counts as it was before", err)
}

// pods gives each pod that has not ended its tier.
func (r *reader) pods(ctx context.Context, applies *policy.Policy, namespaces map[string]labels.Set, k *Known) error {
	var list corev1.PodList
	if err := r.cache.List(ctx, &list); err != nil {
		return err
	}
	k.addPods(list.Items, applies, namespaces)
	return nil
}

func (k *Known) addPods(list []corev1.Pod, applies *policy.Policy, namespaces map[string]labels.Set) {
	var claims []claim
	for i := range list {
		pod := &list[i]
		if ended(pod.Status.Phase) {
			continue
		}
		v := applies.Tier(pod, &policy.Namespace{Name: pod.Namespace, Labels: namespaces[pod.Namespace]})
		id, static := idOf(pod)
		requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
		claims = append(claims, claim{id: id, static: static, created: pod.CreationTimestamp, uid: pod.UID,
			pod: Pod{Name: pod.Namespace + "/" + pod.Name, Tier: v.Tier, Reason: v.Reason, Limits: v.Limits.OwnMode(), CPU: requests.Cpu().MilliValue()}})
	}
	refused := k.grant(claims)
	k.sum()
	if len(refused) > 0 {
		k.Problems = append(k.Problems, fmt.Sprintf("%d pods claim others' cgroups: %s", len(refused), slices.Min(refused)))
	}
}

// claim is a pod that says which cgroup is its own.
type claim struct {
	id      string
	static  bool // it is named by its hash, which anybody can write
	created metav1.Time
	uid     types.UID
	pod     Pod
}

// grant gives each cgroup to one of those that claim it, and says whom it refused. Whoever may create pods may write a
// hash into one. So a UID counts before a hash, and of those that claim the same hash the highest tier: a namespace
// bounds how high somebody can put his own, and nobody lowers another's.
func (k *Known) grant(claims []claim) (refused []string) {
	last := map[bool]int{true: 1}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(last[a.static], last[b.static]), cmp.Compare(a.pod.Tier, b.pod.Tier),
			a.created.Compare(b.created.Time), cmp.Compare(a.uid, b.uid))
	})
	for _, c := range claims {
		if other, taken := k.Pods[c.id]; taken {
			refused = append(refused, fmt.Sprintf("pod %s says that it is %s, which is %s", c.pod.Name, c.id, other.Name))
			continue
		}
		k.Pods[c.id] = c.pod
	}
	return refused
}

// labels are those of all objects of a kind, by name.
func (r *reader) labels(ctx context.Context, kind string) (map[string]labels.Set, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := r.cache.List(ctx, list); err != nil {
		return nil, err
	}
	all := map[string]labels.Set{}
	for _, object := range list.Items {
		all[object.Name] = object.Labels
	}
	return all, nil
}

// silent says what the API server cannot be heard of, and whether it hears.
func (c *cluster) silent() []string {
	list := c.hearing.problems()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report != nil {
		list = append(list, "reports do not reach the API server; what it said last holds, and the agent's log says why")
	}
	return list
}
