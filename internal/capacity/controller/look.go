package controller

import (
	"context"
	"strconv"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/guard"
	"temper.dev/temper/internal/capacity/snapshot"
	"temper.dev/temper/internal/cluster/fleet"
)

// enforcementChanged passes reports by which a node becomes enforced, or ceases to be. Figures change once a minute on each node.
var enforcementChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, wasReport := e.ObjectOld.(*v1alpha1.TemperNode)
	after, isReport := e.ObjectNew.(*v1alpha1.TemperNode)
	return wasReport && isReport && enforced(before) != enforced(after)
}}

// scalingChanged passes autoscalers that name another workload, or another metric. Their status changes all the time.
var scalingChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, was := e.ObjectOld.(*autoscalingv2.HorizontalPodAutoscaler)
	after, is := e.ObjectNew.(*autoscalingv2.HorizontalPodAutoscaler)
	if !was || !is {
		return false
	}
	from, scaledBefore := snapshot.ScaledByCPU(before)
	to, scaledAfter := snapshot.ScaledByCPU(after)
	return from != to || scaledBefore != scaledAfter
}}

// isEnforced is whether a node's agent says so, and has done so lately.
func isEnforced(report *v1alpha1.TemperNode, now time.Time) bool {
	return enforced(report) && !fleet.IsStale(report, now)
}

// look asks the guard what it makes of the nodes. Cordoned ones do not count: no pod comes to them.
func (p *policies) look(ctx context.Context, capacity *v1alpha1.CapacityPolicy) (guard.Verdict, error) {
	list, err := nodesOf(ctx, p.cluster)
	if err != nil {
		return guard.Verdict{}, err
	}
	var reports v1alpha1.TemperNodeList
	if err := p.cluster.List(ctx, &reports); err != nil {
		return guard.Verdict{}, err
	}
	byName := map[string]*v1alpha1.TemperNode{}
	for i := range reports.Items {
		byName[reports.Items[i].Name] = &reports.Items[i]
	}
	now := p.now()
	var looked []guard.Node
	seen := map[string]bool{}
	for _, node := range list {
		is, err := selected(capacity, node)
		if err != nil {
			return guard.Verdict{}, err
		}
		if !is || node.Spec.Unschedulable {
			continue
		}
		n := guard.Node{Name: node.Name}
		if report := byName[node.Name]; report != nil && isEnforced(report, now) {
			n.Enforced, n.Load, seen[node.Name] = true, p.meter.Read(node.Name, counters(node, report)), true
		}
		looked = append(looked, n)
	}
	p.meter.Keep(seen)
	return limitsOf(capacity.Spec.Guard).Next(stateOf(capacity.Status), looked, now), nil
}

func limitsOf(spec v1alpha1.GuardSpec) guard.Limits {
	return guard.Limits{FitPercent: int(spec.MinFitPercent), UsePercent: int(spec.MaxUsePercent), LongWaitsPercent: int(spec.MaxLongWaitsPercent),
		RecoverAfter: time.Duration(*spec.RecoverAfterSeconds) * time.Second}
}

// stateOf is what the last look left, of this leader or of another.
func stateOf(status v1alpha1.CapacityPolicyStatus) guard.State {
	state := guard.State{Lowering: meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionGuarded)}
	if status.CalmSince != nil {
		state.CalmSince = status.CalmSince.Time
	}
	return state
}

// counters are a node's, as its agent has reported them.
func counters(node *corev1.Node, report *v1alpha1.TemperNode) guard.Counters {
	c := guard.Counters{At: report.Status.Reported.Time, CPUs: node.Status.Capacity.Cpu().AsApproximateFloat64()}
	for _, t := range report.Status.Tiers {
		if t.Tier == "background" {
			continue
		}
		seconds, err := strconv.ParseFloat(t.CPUSeconds, 64)
		if err != nil { // it is not said, which an agent does where nothing is enforced
			return guard.Counters{At: c.At}
		}
		c.Seconds += seconds
		if t.Tier == "standard" {
			c.Waits, c.LongWaits = t.Waits, t.LongWaits
		}
	}
	return c
}
