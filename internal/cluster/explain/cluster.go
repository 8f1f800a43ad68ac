package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/fleet"
	"temper.dev/temper/internal/cluster/policy"
)

// Scheme has the kinds that matter to tiers.
func Scheme() *runtime.Scheme { return scheme }

// OfCluster is what becomes of pods that a cluster has: those of a namespace ("": of all)
// that have not ended, or those of it that are named.
// Policies that are not valid are left out, and returned as faults.
func OfCluster(ctx context.Context, cluster client.Reader, namespace string, names []string) (answers []Answer, faults []error, err error) {
	var from v1alpha1.TierPolicyList
	if err := cluster.List(ctx, &from); err != nil {
		return nil, nil, fmt.Errorf("list TierPolicies: %w", err)
	}
	var policies []*policy.Policy
	for i := range from.Items {
		p, err := policy.Compile(&from.Items[i])
		if err != nil {
			faults = append(faults, err)
			continue
		}
		policies = append(policies, p)
	}
	pods, err := podsOf(ctx, cluster, namespace, names)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := labelsOf(ctx, cluster, "Node")
	if err != nil {
		return nil, nil, err
	}
	namespaces, err := labelsOf(ctx, cluster, "Namespace")
	if err != nil {
		return nil, nil, err
	}
	reports, err := reportsOf(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	for i := range pods {
		in := &policy.Namespace{Name: pods[i].Namespace, Labels: namespaces[pods[i].Namespace]}
		a := Of(&pods[i], in, policies, nodes)
		a.InForce = inForce(&pods[i], a.Tier, reports)
		a.Reservation = reservation(&pods[i], a.Tier, reports)
		answers = append(answers, a)
	}
	slices.SortFunc(answers, func(a, b Answer) int { return cmp.Compare(a.Name, b.Name) })
	return answers, faults, nil
}

// reportsOf is what the nodes' agents say, by node.
func reportsOf(ctx context.Context, cluster client.Reader) (map[string]fleet.Node, error) {
	nodes, err := fleet.Nodes(ctx, cluster, nil, time.Now())
	if err != nil && !meta.IsNoMatchError(err) { // a cluster in which Temper is older has none
		return nil, fmt.Errorf("list TemperNodes: %w", err)
	}
	byName := map[string]fleet.Node{}
	for _, n := range nodes {
		byName[n.Name] = n
	}
	return byName, nil
}

func inForce(pod *corev1.Pod, t tier.Tier, reports map[string]fleet.Node) string {
	node, reported := reports[pod.Spec.NodeName]
	switch {
	case pod.Spec.NodeName == "":
		return "no (not bound to a node yet)"
	case !reported:
		return "no (no agent reports from its node)"
	}
	return node.InForce(pod.Namespace+"/"+pod.Name, v1alpha1.Tier(t.String()))
}

func podsOf(ctx context.Context, cluster client.Reader, namespace string, names []string) ([]corev1.Pod, error) {
	if len(names) == 0 {
		var list corev1.PodList
		err := cluster.List(ctx, &list, client.InNamespace(namespace))
		return slices.DeleteFunc(list.Items, hasEnded), err
	}
	pods := make([]corev1.Pod, len(names))
	for i, name := range names {
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pods[i]); err != nil {
			return nil, err
		}
	}
	return pods, nil
}

func hasEnded(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// labelsOf is the labels of all nodes, or all namespaces. Nothing else is asked for: nodes are large objects.
func labelsOf(ctx context.Context, cluster client.Reader, kind string) (map[string]labels.Set, error) {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := cluster.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind, err)
	}
	all := map[string]labels.Set{}
	for _, object := range list.Items {
		all[object.Name] = object.Labels
	}
	return all, nil
}

// Of is what becomes of a pod of a cluster with these policies, whose nodes have these labels.
func Of(pod *corev1.Pod, in *policy.Namespace, policies []*policy.Policy, nodes map[string]labels.Set) Answer {
	on, known := nodes[pod.Spec.NodeName]
	a := Answer{Name: "Pod/" + pod.Namespace + "/" + pod.Name, Verdict: policy.Select(policies, on).Tier(pod, in)}
	switch {
	case pod.Spec.NodeName == "":
		a.Unknown = append(a.Unknown, "the node, and so the policy: the pod is not bound to one yet")
	case !known:
		a.Unknown = append(a.Unknown, fmt.Sprintf("the labels of node %s, which does not exist", pod.Spec.NodeName))
	}
	return a
}
