// Nodes without an agent that reports.
//
// Problem: a node whose agent never came has no TemperNode, and a list of TemperNodes looks as if all were well.
//
// Method: nodes that a TierPolicy selects, and those that are named, are listed too. Of each whose agent does not report, or
// is not ready, what is known of the agent's pod is told.
//
// Limits: it takes the right to list nodes, TierPolicies, and the agents' pods and DaemonSet. Without it reports are all that
// can be shown, and who asks is told so.

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/cluster/policy"
)

// All are the nodes of these names, or all that report or that a TierPolicy selects, with what is wrong with their agents.
// Who may not know that has the reports alone, and hidden is why.
func All(ctx context.Context, cluster client.Reader, names []string, now time.Time) (nodes []Node, hidden, err error) {
	if nodes, err = Nodes(ctx, cluster, names, now); err != nil {
		return nil, nil, err
	}
	a, err := agentsOf(ctx, cluster)
	switch {
	case apierrors.IsForbidden(err):
		a, hidden = &agents{}, fmt.Errorf("nodes without an agent cannot be shown: %w", err)
	case err != nil:
		return nil, nil, err
	}
	for i := range nodes {
		nodes[i].Agent = a.fault(nodes[i])
	}
	for i := range a.nodes {
		node := &a.nodes[i]
		if slices.ContainsFunc(nodes, func(n Node) bool { return n.Name == node.Name }) {
			continue
		}
		selected := policy.Select(a.policies, node.Labels)
		if len(names) == 0 && selected != nil || slices.Contains(names, node.Name) {
			n := Node{Name: node.Name, Stale: true}
			n.Agent = a.fault(n)
			if selected == nil {
				n.Agent = "no TierPolicy selects the node; " + n.Agent
			}
			nodes = append(nodes, n)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(nodes, func(n Node) bool { return n.Name == name }) {
			if hidden != nil {
				return nil, nil, exit.New(exit.Failed, "see 'kubectl get tempernodes' for those that do", "no agent reports from a node %q", name)
			}
			return nil, nil, exit.New(exit.Failed, "see 'kubectl get nodes' for the names", "there is no node %q", name)
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes, hidden, nil
}

// agents are what there is of agents in a cluster, and where they should be.
type agents struct {
	nodes    []metav1.PartialObjectMetadata // labels alone: nodes are large
	policies []*policy.Policy
	sets     []appsv1.DaemonSet
	pods     map[string][]corev1.Pod // by node
}

func agentsOf(ctx context.Context, cluster client.Reader) (*agents, error) {
	a := &agents{pods: map[string][]corev1.Pod{}}
	nodes := metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	var policies v1alpha1.TierPolicyList
	var sets appsv1.DaemonSetList
	var pods corev1.PodList
	for _, list := range []struct {
		of      client.ObjectList
		options []client.ListOption
	}{
		{&nodes, nil}, {&policies, nil}, {&sets, []client.ListOption{Agents}}, {&pods, []client.ListOption{Agents}},
	} {
		if err := cluster.List(ctx, list.of, list.options...); err != nil {
			return nil, err
		}
	}
	a.nodes, a.sets = nodes.Items, sets.Items
	for i := range policies.Items {
		if p, err := policy.Compile(&policies.Items[i]); err == nil { // explain tells of others
			a.policies = append(a.policies, p)
		}
	}
	for _, pod := range pods.Items {
		a.pods[pod.Spec.NodeName] = append(a.pods[pod.Spec.NodeName], pod)
	}
	return a, nil
}

// fault is what is wrong with a node's agent; "": nothing, as far as is known.
func (a *agents) fault(n Node) string {
	pods := a.pods[n.Name]
	switch {
	case slices.ContainsFunc(pods, isReady):
		return ""
	case len(pods) > 0:
		pod := pods[len(pods)-1]
		return fmt.Sprintf("agent's pod %s/%s is not ready: %s", pod.Namespace, pod.Name, why(pod))
	case !n.Stale: // an agent outside a pod
		return ""
	}
	i := slices.IndexFunc(a.nodes, func(node metav1.PartialObjectMetadata) bool { return node.Name == n.Name })
	switch {
	case i < 0: // it has gone, or nobody may know
		return ""
	case len(a.sets) == 0:
		return "no agent's pod is there, and no DaemonSet of agents is"
	}
	set := a.sets[0] // a cluster has one
	of := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: a.nodes[i].Labels}}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: set.Spec.Template.Spec}).Match(of); err != nil || !fits {
		return fmt.Sprintf("no agent's pod is there: DaemonSet %s/%s selects other nodes", set.Namespace, set.Name)
	}
	return fmt.Sprintf("no agent's pod is there: 'kubectl describe daemonset -n %s %s' and the node's taints say why", set.Namespace, set.Name)
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// why a pod is not ready, in Kubernetes' own words where it has any.
func why(pod corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if waiting := s.State.Waiting; waiting != nil {
			return waiting.Reason
		}
	}
	if pod.Status.Phase != corev1.PodRunning {
		return cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
	}
	return "its log says why"
}
