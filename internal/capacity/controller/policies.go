package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/guard"
	"temper.dev/temper/internal/capacity/overcommit"
	"temper.dev/temper/internal/capacity/overcommit/incluster"
	"temper.dev/temper/internal/capacity/snapshot"
)

// policies keeps the admission policies as the CapacityPolicy says.
type policies struct {
	cluster client.Client // reads what it watches from a cache
	live    client.Reader // what the next write follows from: a cache may be behind our own last write
	events  events.EventRecorder
	every   time.Duration
	now     func() time.Time
	meter   guard.Meter
	told    *figures
}

// Reasons of condition Ready.
const (
	reasonInForce     = "InForce"
	reasonGuarded     = "Guarded"
	reasonInvalid     = "Invalid"
	reasonForeign     = "ForeignPolicy" // admission policies are there that do not say what they were made of
	reasonNoNamespace = "NoNamespace"
	reasonFailed      = "Failed" // what it was to do could not be done
)

func (p *policies) watch(m manager.Manager) error {
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: policyKey}}
	})
	ours := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
		return strings.HasPrefix(o.GetName(), overcommit.LowerName)
	}))
	return builder.ControllerManagedBy(m).Named("capacitypolicy").
		For(&v1alpha1.CapacityPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.TierPolicy{}, one, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, one, builder.WithPredicates(scalingChanged)).
		Watches(&v1alpha1.TemperNode{}, one, builder.WithPredicates(enforcementChanged)).
		Watches(&admissionv1.MutatingAdmissionPolicy{}, one, ours).
		Watches(&admissionv1.MutatingAdmissionPolicyBinding{}, one, ours).
		Complete(p)
}

// Reconcile makes the admission policies what the CapacityPolicy says and the guard lets it.
func (p *policies) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var capacity v1alpha1.CapacityPolicy
	err := p.live.Get(ctx, policyKey, &capacity)
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return reconcile.Result{}, err
	}
	found, readErr := incluster.Read(ctx, p.live)
	if readErr != nil {
		return reconcile.Result{}, readErr
	}
	if err != nil || capacity.DeletionTimestamp != nil {
		p.told.set(nil)
		return p.end(ctx, found)
	}
	verdict, err := p.look(ctx, &capacity)
	var ready metav1.Condition
	if err == nil {
		ready, err = p.keep(ctx, &capacity, found, &verdict)
	}
	if err != nil {
		return reconcile.Result{}, p.fail(ctx, &capacity, found, err)
	}
	return reconcile.Result{RequeueAfter: p.every}, p.report(ctx, &capacity, verdict, ready)
}

// fail has new pods keep their requests where the guard cannot look, or what it asks for cannot be written, and says so. What
// closes the policies is made of what is stored, and of nothing that has grown since.
func (p *policies) fail(ctx context.Context, capacity *v1alpha1.CapacityPolicy, found incluster.Policies, because error) error {
	if ctx.Err() != nil { // another leads now, or nobody
		return because
	}
	earlier, err := found.Guarding()
	if err == nil && earlier != nil {
		_, err = incluster.Write(ctx, p.cluster, earlier.Closing(), false)
	}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reasonFailed, Message: shorten(because.Error())}
	verdict := guard.Verdict{}
	pause(&verdict, ready)
	return errors.Join(because, err, p.report(ctx, capacity, verdict, ready))
}

// shorten keeps a text within what the API server takes of an event.
func shorten(text string) string { return text[:min(len(text), 1000)] }

// keep writes the admission policies, and says what has become of them.
func (p *policies) keep(ctx context.Context, capacity *v1alpha1.CapacityPolicy, found incluster.Policies, verdict *guard.Verdict) (ready metav1.Condition, err error) {
	ready = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	earlier, err := found.Guarding()
	if err != nil {
		ready.Reason, ready.Message = reasonForeign, err.Error()
		pause(verdict, ready)
		return ready, nil
	}
	rules, leftOut, err := p.rules(ctx, capacity, earlier)
	var invalid *invalidError
	switch {
	case errors.As(err, &invalid):
		// Who is critical is not known, so that nobody is lowered.
		ready.Reason, ready.Message = reasonInvalid, err.Error()
		pause(verdict, ready)
		if earlier == nil {
			return ready, nil
		}
		rules = earlier
	case err != nil:
		return ready, err
	case len(leftOut) == len(capacity.Spec.Namespaces):
		ready.Reason, ready.Message = reasonNoNamespace, "each namespace has an autoscaler whose pods cannot be told"
		pause(verdict, ready)
	case !verdict.Lowering:
		ready.Reason, ready.Message = reasonGuarded, "new pods keep their requests: "+verdict.Message
	default:
		ready.Status, ready.Reason = metav1.ConditionTrue, reasonInForce
		ready.Message = fmt.Sprintf("new pods are left with %d per cent of their CPU requests", capacity.Spec.FactorPercent)
	}
	if len(leftOut) > 0 {
		ready.Message += "; left out, since an autoscaler there scales what pods cannot be told from: " + strings.Join(leftOut, ", ")
	}
	objects := rules.Closing()
	if verdict.Lowering {
		objects = rules.Manifests()
	}
	made, err := incluster.Write(ctx, p.cluster, objects, false)
	for _, m := range made {
		if m.Change != "unchanged" {
			log.FromContext(ctx).Info("admission policy "+m.Change, "kind", m.Kind, "name", m.Name)
		}
	}
	return ready, err
}

// pause has new pods keep their requests, whatever the guard has found.
func pause(verdict *guard.Verdict, because metav1.Condition) {
	verdict.State, verdict.Reason, verdict.Message = guard.State{}, because.Reason, because.Message
}

// invalidError is of rules that cannot be made of what the cluster has.
type invalidError struct{ error }

// rules are what the CapacityPolicy asks for, after those that were. Namespaces that have to be left out are named.
func (p *policies) rules(ctx context.Context, capacity *v1alpha1.CapacityPolicy, earlier *overcommit.Rules) (rules *overcommit.Rules, leftOut []string, err error) {
	spec := capacity.Spec
	policy := overcommit.Policy{Factor: float64(spec.FactorPercent) / 100, Floor: spec.Floor.MilliValue(), EnforcedOnly: true, KeptBy: capacity.Name}
	for _, name := range spec.Tiers {
		t, err := tier.Parse(string(name))
		if err != nil {
			return nil, nil, &invalidError{err}
		}
		policy.Tiers = append(policy.Tiers, t)
	}
	if policy.TierPolicies, err = tierPolicies(ctx, p.cluster); err != nil {
		return nil, nil, err
	}
	scaling, err := autoscalers(ctx, p.cluster)
	if err != nil {
		return nil, nil, err
	}
	known, unknown := overcommit.Autoscaled(scaling, spec.Namespaces)
	for _, w := range unknown {
		leftOut = append(leftOut, w.Namespace)
	}
	slices.Sort(leftOut)
	leftOut = slices.Compact(leftOut)
	policy.Namespaces = slices.Clone(spec.Namespaces)
	if len(leftOut) < len(spec.Namespaces) {
		policy.Namespaces = slices.DeleteFunc(policy.Namespaces, func(name string) bool { return slices.Contains(leftOut, name) })
	}
	policy.Autoscaled = known
	for _, w := range spec.Exempt {
		policy.Autoscaled = append(policy.Autoscaled, snapshot.Workload{Namespace: w.Namespace, Kind: w.Kind, Name: w.Name})
	}
	// A cache's lists have no order. Another order would be another admission policy, which the API server compiles anew.
	slices.SortFunc(policy.TierPolicies, func(a, b *v1alpha1.TierPolicy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(policy.Autoscaled, func(a, b snapshot.Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	policy.Autoscaled = slices.Compact(policy.Autoscaled)
	if rules, err = overcommit.Compile(policy); err == nil && earlier != nil {
		rules, err = rules.After(earlier)
	}
	if err != nil {
		return nil, nil, &invalidError{err}
	}
	return rules, leftOut, nil
}

// end closes the admission policies of a CapacityPolicy that is gone, and deletes them where no pod has an original that they
// keep. Those that somebody has made by command are his.
func (p *policies) end(ctx context.Context, found incluster.Policies) (reconcile.Result, error) {
	of := cmp.Or(found.Keep, found.Lower)
	if of == nil {
		return reconcile.Result{}, nil
	}
	rules, err := overcommit.Stored(of)
	if err != nil || rules.KeptBy == "" {
		return reconcile.Result{}, nil // an error: somebody else's
	}
	lowering, err := found.Lowering()
	if err != nil {
		return reconcile.Result{}, err
	}
	if lowering != nil {
		if _, err := incluster.Write(ctx, p.cluster, rules.Closing(), false); err != nil {
			return reconcile.Result{}, err
		}
		// Until the API server follows, pods may still be lowered. They count at the next look.
		return reconcile.Result{RequeueAfter: p.every}, nil
	}
	lowered, err := incluster.Lowered(ctx, p.live, rules)
	if err != nil {
		return reconcile.Result{}, err
	}
	if lowered == 0 {
		_, err := incluster.Delete(ctx, p.cluster, rules.Manifests())
		return reconcile.Result{}, err
	}
	// 'kubectl temper overcommit restore' goes on from here.
	rules.KeptBy = ""
	_, err = incluster.Write(ctx, p.cluster, rules.Closing(), false)
	return reconcile.Result{}, err
}

// report writes the status where it has changed, and an event where the guard has turned.
func (p *policies) report(ctx context.Context, capacity *v1alpha1.CapacityPolicy, verdict guard.Verdict, ready metav1.Condition) error {
	before := capacity.Status.DeepCopy()
	guarded := metav1.Condition{Type: v1alpha1.ConditionGuarded, Status: metav1.ConditionTrue, Reason: verdict.Reason, Message: verdict.Message}
	status := &capacity.Status
	status.FactorPercent = 100
	if verdict.Lowering {
		guarded.Status, status.FactorPercent = metav1.ConditionFalse, capacity.Spec.FactorPercent
	}
	status.Nodes, status.FitNodes, status.CalmSince = int32(verdict.Nodes), int32(verdict.Fit), nil
	if !verdict.CalmSince.IsZero() {
		status.CalmSince = &metav1.Time{Time: verdict.CalmSince.Truncate(time.Second)}
	}
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionGuarded)
	turned := was == nil || was.Status != guarded.Status
	for _, c := range []metav1.Condition{ready, guarded} {
		c.ObservedGeneration = capacity.Generation
		meta.SetStatusCondition(&status.Conditions, c)
	}
	p.told.set(status.DeepCopy())
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	if err := p.cluster.Status().Update(ctx, capacity); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if turned {
		kind, action := corev1.EventTypeNormal, "Recover"
		if guarded.Status == metav1.ConditionTrue {
			kind, action = corev1.EventTypeWarning, "Pause"
		}
		p.events.Eventf(capacity, nil, kind, "Guarded"+string(guarded.Status), action, "%s", shorten(guarded.Reason+": "+guarded.Message))
	}
	return nil
}
