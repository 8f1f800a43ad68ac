// Package advice says what a snapshot's owner could do: which nodes break the sizing rule, what each namespace could give
// back, which tier each pod is in, the fewest nodes that hold the pods, and the shape of node that would fit. What cannot be
// known gets the strictest answer: no number where data is short, and no request below what a critical pod has needed.
package advice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/snapshot"
)

// SchemaVersion rises when a field of the JSON changes its name or its meaning. New fields do not raise it.
const SchemaVersion = 1

// Advice is all that is said. CPUs are numbers of CPUs, to the thousandth.
type Advice struct {
	SchemaVersion int `json:"schemaVersion"`
	// IfEnforced: no node is enforced yet, and the plan is what it would be if all were that nobody reports for.
	IfEnforced  bool        `json:"ifEnforced"`
	EnoughHours int         `json:"enoughHours"`
	Notes       []string    `json:"notes"`
	Nodes       []Node      `json:"nodes"`
	Namespaces  []Namespace `json:"namespaces"`
	Pods        []Pod       `json:"pods"`
	Shapes      []Shape     `json:"shapes"`
	Plan        *Plan       `json:"plan,omitempty"` // none without nodes
}

// Node is how the critical pods of a node fit into it, and how full it is.
type Node struct {
	Node         string  `json:"node"`
	Fits         bool    `json:"fits"` // the sizing rule is kept
	CriticalCPUs float64 `json:"criticalCPUs"`
	RoomCPUs     float64 `json:"roomCPUs"` // the physical cores but one
	Cores        int     `json:"cores"`
	CoresAssumed bool    `json:"coresAssumed"` // half of the CPUs, since nobody reports cores
	// NotEnforced says why the node does not count as enforced.
	NotEnforced   string   `json:"notEnforced,omitempty"`
	CPUs          float64  `json:"cpus"` // allocatable
	RequestedCPUs float64  `json:"requestedCPUs"`
	UsedCPUs      *float64 `json:"usedCPUs,omitempty"` // as a namespace's
}

// Namespace is what its pods could give back.
type Namespace struct {
	Namespace     string   `json:"namespace"`
	Pods          int      `json:"pods"`
	RequestedCPUs float64  `json:"requestedCPUs"`
	UsedCPUs      *float64 `json:"usedCPUs,omitempty"` // the sum of the pods' p95, else of one moment
	// GiveBackCPUs is what the pods of which enough is known request, less what they could; below 0 they request too little.
	// None of them is known: it is missing, and Why says why.
	GiveBackCPUs *float64 `json:"giveBackCPUs,omitempty"`
	PodsKnown    int      `json:"podsKnown"`
	PodsTooLow   int      `json:"podsTooLow"` // of those, that request less than they could
	Why          string   `json:"why,omitempty"`
}

// Pod is a pod's tier, and what it could request.
type Pod struct {
	Pod           string    `json:"pod"` // namespace/name
	Workload      string    `json:"workload"`
	Node          string    `json:"node,omitempty"`
	Tier          tier.Tier `json:"tier"`
	Policy        string    `json:"policy,omitempty"`
	Rule          string    `json:"rule,omitempty"`
	Reason        string    `json:"reason"`
	RequestedCPUs float64   `json:"requestedCPUs"`
	// Hours of data; what was measured is there if there are any.
	Hours             float64  `json:"hours"`
	HighestMinuteCPUs *float64 `json:"highestMinuteCPUs,omitempty"`
	P95CPUs           *float64 `json:"p95CPUs,omitempty"`
	MomentCPUs        *float64 `json:"momentCPUs,omitempty"` // by metrics.k8s.io
	RecommendedCPUs   *float64 `json:"recommendedCPUs,omitempty"`
	// AdvisedCPUs is what the pod could request. Missing: Why says why.
	AdvisedCPUs *float64 `json:"advisedCPUs,omitempty"`
	Why         string   `json:"why,omitempty"`

	namespace string
}

// Plan is the fewest nodes that were found to hold the pods.
type Plan struct {
	NodesBefore int       `json:"nodesBefore"`
	NodesAfter  int       `json:"nodesAfter"`
	AtLeast     int       `json:"atLeast"` // no plan goes below
	SavedCPUs   float64   `json:"savedCPUs"`
	Emptied     []Emptied `json:"emptied"`
	Kept        []Kept    `json:"kept"`
	// Complete: the search has ended by itself. With the same seed and snapshot it then gives the same plan.
	Complete  bool     `json:"complete"`
	Seeds     []uint64 `json:"seeds"`
	Decisions int      `json:"decisions"`
}

// Emptied is a node that the plan does without.
type Emptied struct {
	Node  string      `json:"node"`
	Moves []plan.Move `json:"moves"`
}

// Kept is a node that the plan keeps, and what keeps it.
type Kept struct {
	Node    string   `json:"node"`
	Reasons []string `json:"reasons"`
}

// Options are how advice is made.
type Options struct {
	Notes    []string
	Seed     uint64
	Improved func(*plan.Plan)
	// Shapes to try beside those of the cluster's nodes.
	Shapes []Shape
}

// Make gives advice. Where ctx ends, the plan is the best that was found until then; without one, ctx's error.
func Make(ctx context.Context, s *snapshot.Snapshot, o Options) (*Advice, error) {
	tiers, err := plan.TiersOf(s)
	if err != nil {
		return nil, err
	}
	a := &Advice{SchemaVersion: SchemaVersion, EnoughHours: snapshot.EnoughHours, Notes: o.Notes, Namespaces: []Namespace{}, Pods: []Pod{}}
	if a.Notes == nil {
		a.Notes = []string{}
	}
	a.addPods(s, tiers)
	a.addNamespaces()
	a.addNodes(s, tiers)
	a.Shapes = shapes(s, tiers, o.Shapes)
	if len(s.Nodes) == 0 {
		return a, nil
	}
	a.IfEnforced = !slices.ContainsFunc(tiers.Nodes, func(n plan.Sized) bool { return n.Uncounted == "" })
	if a.IfEnforced {
		s = ifEnforced(s)
	}
	found, err := plan.Make(ctx, s, plan.Options{Seed: o.Seed, Improved: o.Improved})
	if err != nil {
		return nil, err
	}
	a.Plan = PlanOf(found, ctx.Err() == nil)
	return a, nil
}

// addPods says of each pod that has not ended what is known of it.
func (a *Advice) addPods(s *snapshot.Snapshot, tiers *plan.Tiers) {
	workload := s.Workloads()
	scaled := autoscaled(s)
	waiting := 0
	for _, pod := range s.Pods {
		if snapshot.Ended(pod) {
			continue
		}
		verdict := tiers.Of(pod)
		key, w := snapshot.Key(pod), workload(pod)
		p := Pod{Pod: key, namespace: pod.Namespace, Workload: w.Kind + "/" + w.Name, Node: pod.Spec.NodeName,
			Tier: verdict.Tier, Policy: verdict.Policy, Rule: verdict.Rule, Reason: verdict.Reason, RequestedCPUs: cpus(requestOf(pod))}
		if moment, ok := s.Moment[key]; ok {
			p.MomentCPUs = new(cpus(moment.MilliValue()))
		}
		if r, ok := s.Recommended[key]; ok {
			p.RecommendedCPUs, p.Hours = new(cpus(r.CPU.MilliValue())), r.Hours
		}
		use, measured := s.Use[key]
		if measured {
			p.HighestMinuteCPUs, p.P95CPUs, p.Hours = new(cpus(use.CPU.MilliValue())), new(cpus(use.P95.MilliValue())), use.Hours
		}
		// Who may be critical is treated as if it were.
		strict := verdict.Tier <= tier.Critical || verdict.Unresolved
		p.AdvisedCPUs, p.Why = advise(&p, strict, scaled[w])
		if p.AdvisedCPUs != nil {
			p.AdvisedCPUs = new(cpus(requestWith(pod, *p.AdvisedCPUs)))
		}
		if pod.Spec.NodeName == "" {
			waiting++
		}
		a.Pods = append(a.Pods, p)
	}
	slices.SortFunc(a.Pods, func(x, y Pod) int { return cmp.Compare(x.Pod, y.Pod) })
	if waiting > 0 && len(s.Nodes) > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d pods wait for a node: the plan gives them theirs first, and leaves those pending that fit on none", waiting))
	}
}

// advise is what a pod could request, or why nobody can tell. A critical pod keeps its highest minute, and others what 95 %
// of the minutes stayed below, or what their autoscaler recommends.
func advise(p *Pod, strict, autoscaled bool) (*float64, string) {
	measured := p.HighestMinuteCPUs != nil
	switch {
	case autoscaled:
		return nil, "a HorizontalPodAutoscaler works by its CPU request"
	case measured && p.Hours >= snapshot.EnoughHours && strict:
		return p.HighestMinuteCPUs, ""
	case measured && p.Hours >= snapshot.EnoughHours:
		return p.P95CPUs, ""
	case !measured && p.RecommendedCPUs != nil && strict:
		return nil, "its VerticalPodAutoscaler does not say what its highest minute was"
	case !measured && p.RecommendedCPUs != nil && p.Hours >= snapshot.EnoughHours:
		return p.RecommendedCPUs, ""
	}
	return nil, notEnough(p.Hours)
}

// notEnough is said in place of a number. Hours are rounded down: 23.9 are not 24.
func notEnough(hours float64) string {
	return fmt.Sprintf("not enough data: %d h of %d", int(hours), snapshot.EnoughHours)
}

// autoscaled are the workloads whose replicas follow the share of CPU requests that is used.
func autoscaled(s *snapshot.Snapshot) map[snapshot.Workload]bool {
	found := map[snapshot.Workload]bool{}
	for _, h := range s.Autoscalers {
		if w, ok := snapshot.ScaledByCPU(h); ok {
			found[w] = true
		}
	}
	return found
}

func (a *Advice) addNamespaces() {
	all := map[string]*Namespace{}
	most := map[string]float64{} // hours of data
	for _, p := range a.Pods {
		n := all[p.namespace]
		if n == nil {
			n = &Namespace{Namespace: p.namespace}
			all[p.namespace] = n
		}
		n.Pods++
		n.RequestedCPUs = round(n.RequestedCPUs + p.RequestedCPUs)
		n.UsedCPUs = plus(n.UsedCPUs, p.used())
		most[p.namespace] = max(most[p.namespace], p.Hours)
		if p.AdvisedCPUs == nil {
			n.Why = p.Why
			continue
		}
		n.PodsKnown++
		n.GiveBackCPUs = plus(n.GiveBackCPUs, new(p.RequestedCPUs-*p.AdvisedCPUs))
		if *p.AdvisedCPUs > p.RequestedCPUs {
			n.PodsTooLow++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := all[name]
		if n.PodsKnown > 0 {
			n.Why = ""
		} else if most[name] < snapshot.EnoughHours {
			n.Why = notEnough(most[name])
		}
		a.Namespaces = append(a.Namespaces, *n)
	}
}

// used is the best that is known of a pod's use; nil: nothing is.
func (p *Pod) used() *float64 {
	if p.P95CPUs != nil {
		return p.P95CPUs
	}
	return p.MomentCPUs
}

func plus(sum, more *float64) *float64 {
	if more == nil {
		return sum
	}
	if sum == nil {
		sum = new(float64)
	}
	return new(round(*sum + *more))
}

func (a *Advice) addNodes(s *snapshot.Snapshot, tiers *plan.Tiers) {
	requested, used := map[string]float64{}, map[string]*float64{}
	for _, p := range a.Pods {
		requested[p.Node] += p.RequestedCPUs
		used[p.Node] = plus(used[p.Node], p.used())
	}
	allocatable := map[string]float64{}
	for _, n := range s.Nodes {
		allocatable[n.Name] = cpus(n.Status.Allocatable.Cpu().MilliValue())
	}
	a.Nodes = []Node{}
	for _, t := range tiers.Nodes {
		a.Nodes = append(a.Nodes, Node{Node: t.Node, Fits: t.Fits(), CriticalCPUs: cpus(t.Demand), RoomCPUs: cpus(t.Room), Cores: t.Cores,
			CoresAssumed: t.Assumed, NotEnforced: t.Uncounted, CPUs: allocatable[t.Node], RequestedCPUs: round(requested[t.Node]), UsedCPUs: used[t.Node]})
	}
}

// ifEnforced is the snapshot as it would be if Temper were on all nodes that nobody reports for. A node whose agent says
// that it is not enforced stays as it is: its agent has a reason.
func ifEnforced(s *snapshot.Snapshot) *snapshot.Snapshot {
	as := *s
	reported := map[string]bool{}
	as.TemperNodes = nil
	for _, report := range s.TemperNodes {
		if meta.FindStatusCondition(report.Status.Conditions, v1alpha1.ConditionEnforced) != nil {
			reported[report.Name] = true
			as.TemperNodes = append(as.TemperNodes, report)
		}
	}
	for _, node := range s.Nodes {
		if !reported[node.Name] {
			as.TemperNodes = append(as.TemperNodes, &v1alpha1.TemperNode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}, Status: v1alpha1.TemperNodeStatus{
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue}}}})
		}
	}
	return &as
}

// PlanOf is what the planner has found. Complete: its search has ended by itself.
func PlanOf(found *plan.Plan, complete bool) *Plan {
	p := &Plan{NodesBefore: found.NodesBefore, NodesAfter: found.NodesAfter, AtLeast: found.AtLeast, SavedCPUs: cpus(found.SavedMilliCPU),
		Emptied: []Emptied{}, Kept: []Kept{}, Complete: complete, Seeds: found.Seeds, Decisions: found.Decisions}
	moves := map[string][]plan.Move{}
	for _, step := range found.Steps {
		moves[step.Node] = append(moves[step.Node], step.Moves...)
	}
	for _, node := range found.Nodes() {
		p.Emptied = append(p.Emptied, Emptied{node, append([]plan.Move{}, moves[node]...)})
	}
	for _, k := range found.Kept {
		p.Kept = append(p.Kept, Kept{k.Node, k.Reasons})
	}
	return p
}

// Of is the part of the advice that is about one node; false: there is no such node.
func (a *Advice) Of(node string) (*Advice, bool) {
	one := *a
	is := func(name string) bool { return name == node }
	one.Nodes = kept(a.Nodes, func(n Node) bool { return is(n.Node) })
	one.Pods = kept(a.Pods, func(p Pod) bool { return is(p.Node) })
	one.Namespaces, one.Shapes = []Namespace{}, []Shape{}
	one.addNamespaces()
	if a.Plan != nil {
		p := *a.Plan
		p.Emptied = kept(p.Emptied, func(e Emptied) bool { return is(e.Node) })
		p.Kept = kept(p.Kept, func(k Kept) bool { return is(k.Node) })
		one.Plan = &p
	}
	return &one, len(one.Nodes) > 0
}

func kept[T any](all []T, keep func(T) bool) []T {
	some := []T{}
	for _, one := range all {
		if keep(one) {
			some = append(some, one)
		}
	}
	return some
}

// requestWith is a pod's CPU request, in thousandths, were its containers to request so many CPUs together. Init containers and
// the pod's overhead want what they want.
func requestWith(pod *corev1.Pod, containers float64) int64 {
	as := pod.DeepCopy()
	as.Spec.Resources = nil
	if len(as.Spec.Containers) == 0 { // in a snapshot by hand
		return requestOf(pod)
	}
	for i := range as.Spec.Containers {
		as.Spec.Containers[i].Resources.Requests = nil
	}
	for i, c := range as.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways { // measured with the others
			as.Spec.InitContainers[i].Resources.Requests = nil
		}
	}
	as.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *quantity.NewMilliQuantity(int64(math.Ceil(containers*1000-1e-6)), quantity.DecimalSI)}
	return requestOf(as)
}

// requestOf is a pod's CPU request, in thousandths.
func requestOf(pod *corev1.Pod) int64 {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	return requests.Cpu().MilliValue()
}

func cpus(milli int64) float64 { return round(float64(milli) / 1000) }

// round takes away what sums of thousandths leave behind them.
func round(cpus float64) float64 { return math.Round(cpus*1000) / 1000 }
