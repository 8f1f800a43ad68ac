// Package incluster does overcommit to a cluster: it puts the admission policies in force, lowers pods that they missed, and
// gives pods back what they asked for. What is to be done, package overcommit says.
package incluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/capacity/overcommit"
)

// Policies are the two admission policies that a cluster has; nil: it has none.
type Policies struct {
	Lower, Keep *admissionv1.MutatingAdmissionPolicy
}

// Read finds them.
func Read(ctx context.Context, cluster client.Reader) (p Policies, err error) {
	for name, to := range map[string]**admissionv1.MutatingAdmissionPolicy{overcommit.LowerName: &p.Lower, overcommit.KeepName: &p.Keep} {
		var policy admissionv1.MutatingAdmissionPolicy
		err := cluster.Get(ctx, client.ObjectKey{Name: name}, &policy)
		switch {
		case meta.IsNoMatchError(err):
			return p, exit.New(exit.Failed, "overcommit needs Kubernetes 1.36", "this cluster knows no MutatingAdmissionPolicy of v1")
		case client.IgnoreNotFound(err) != nil:
			return p, err
		case err == nil:
			*to = &policy
		}
	}
	return p, nil
}

// Lowering are the rules by which pods are lowered now; nil: none are.
func (p Policies) Lowering() (*overcommit.Rules, error) {
	if p.Lower == nil {
		return nil, nil
	}
	rules, err := overcommit.Stored(p.Lower)
	if err != nil || !rules.Lowers() {
		return nil, err
	}
	return rules, nil
}

// Guarding are the rules whose annotations nobody can write; nil: anybody can.
func (p Policies) Guarding() (*overcommit.Rules, error) {
	if p.Keep == nil {
		return nil, nil
	}
	return overcommit.Stored(p.Keep)
}

// Made is what became of an object.
type Made struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Change string `json:"change"` // created, changed, unchanged
}

// Write puts objects in force by server-side apply, in their order, or says what that would do.
func Write(ctx context.Context, cluster client.Client, objects []runtime.Object, dryRun bool) ([]Made, error) {
	options := []client.PatchOption{client.FieldOwner(overcommit.Manager), client.ForceOwnership}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	var made []Made
	for _, object := range objects {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		to := object.(client.Object)
		before := to.DeepCopyObject().(client.Object)
		err := cluster.Get(ctx, client.ObjectKeyFromObject(to), before)
		if client.IgnoreNotFound(err) != nil {
			return made, err
		}
		text, marshalErr := json.Marshal(object)
		if marshalErr != nil {
			return made, marshalErr
		}
		change := "changed"
		if apierrors.IsNotFound(err) {
			change = "created"
		}
		after := to.DeepCopyObject().(client.Object)
		if err := cluster.Patch(ctx, after, client.RawPatch(types.ApplyPatchType, text), options...); err != nil {
			return made, err
		}
		if change == "changed" && before.GetGeneration() == after.GetGeneration() && equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) {
			change = "unchanged"
		}
		made = append(made, Made{kind, to.GetName(), change})
	}
	return made, nil
}

// Delete removes objects, those last that stand first, and says which there were.
func Delete(ctx context.Context, cluster client.Client, objects []runtime.Object) ([]Made, error) {
	var made []Made
	for _, object := range slices.Backward(objects) {
		to := object.(client.Object)
		err := cluster.Delete(ctx, to)
		if client.IgnoreNotFound(err) != nil {
			return made, err
		}
		if err == nil {
			made = append(made, Made{object.GetObjectKind().GroupVersionKind().Kind, to.GetName(), "deleted"})
		}
	}
	return made, nil
}

// Await waits until the API server makes of a pod what the rules make of it. A pod is tried out in each of the namespaces, and
// not made. Where none of them takes it, that cannot be seen.
func Await(ctx context.Context, cluster client.Client, rules *overcommit.Rules, namespaces map[string]overcommit.Namespace, limit time.Duration) error {
	var refused, waiting []string
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		refused, waiting = nil, nil
		for _, in := range namespaces {
			pod := probe(in.Name)
			switch err := cluster.Create(ctx, pod, client.DryRunAll); {
			case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
				refused = append(refused, err.Error())
			case err != nil:
				return false, err
			default:
				if again, _ := rules.Admit(pod, in); !equality.Semantic.DeepEqual(again, pod) {
					waiting = append(waiting, in.Name)
				}
			}
		}
		return len(waiting) == 0, nil
	})
	switch {
	case ctx.Err() == nil && wait.Interrupted(err):
		slices.Sort(waiting)
		return exit.New(exit.Failed, "run it again; if it stays so, 'kubectl get --raw /metrics' of the API server says what it could not evaluate",
			"the API server does not do what the policy says within %v, in %s", limit, strings.Join(waiting, ", "))
	case err != nil:
		return err
	case len(refused) > 0 && len(refused) == len(namespaces):
		return exit.New(exit.Failed, "", "the policy is written; whether the API server does what it says cannot be seen, since no namespace takes a pod: %s", refused[0])
	}
	return nil
}

// probe is a pod that shows whether the policy is in force: its annotations are not true, and stay where nothing looks at them.
func probe(namespace string) *corev1.Pod {
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "temper-overcommit-probe", Annotations: map[string]string{
			overcommit.OriginalAnnotation: "probe=1m", overcommit.FactorAnnotation: "none"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe", Resources: corev1.ResourceRequirements{Requests: cpu}}}},
	}
}

// Namespaces are those of these names, with their LimitRanges.
func Namespaces(ctx context.Context, cluster client.Reader, names []string) (map[string]overcommit.Namespace, error) {
	found := map[string]overcommit.Namespace{}
	for _, name := range names {
		var namespace corev1.Namespace
		if err := cluster.Get(ctx, client.ObjectKey{Name: name}, &namespace); apierrors.IsNotFound(err) {
			continue // it has no pods
		} else if err != nil {
			return nil, err
		}
		var limits corev1.LimitRangeList
		if err := cluster.List(ctx, &limits, client.InNamespace(name)); err != nil {
			return nil, fmt.Errorf("list LimitRanges: %w", err)
		}
		found[name] = overcommit.Namespace{Name: name, Labels: namespace.Labels, LimitRanges: limits.Items}
	}
	return found, nil
}

// Pods are those of these namespaces.
func Pods(ctx context.Context, cluster client.Reader, names []string) (pods []corev1.Pod, err error) {
	for _, name := range names {
		var list corev1.PodList
		if err := cluster.List(ctx, &list, client.InNamespace(name)); err != nil {
			return nil, err
		}
		pods = append(pods, list.Items...)
	}
	return pods, nil
}
