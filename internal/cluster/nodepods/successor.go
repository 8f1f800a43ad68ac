package nodepods

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answerWithin is how long the API server may take to say whether another agent comes. The kubelet waits for the end of
// the agent for terminationGracePeriodSeconds of its pod, and a detach has to fit in, too.
const answerWithin = 3 * time.Second

// Successor says whether another agent comes after this one.
type Successor struct {
	cluster   client.Reader
	daemonSet client.ObjectKey // of the agents
	node      string
}

// NewSuccessor makes one for the agent of a node, of the DaemonSet NAMESPACE/NAME.
func NewSuccessor(config *rest.Config, daemonSet, node string) (*Successor, error) {
	namespace, name, ok := strings.Cut(daemonSet, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q is not NAMESPACE/NAME", daemonSet)
	}
	cluster, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &Successor{cluster: cluster, daemonSet: client.ObjectKey{Namespace: namespace, Name: name}, node: node}, nil
}

// Comes tells whether another agent comes, and how that is known. Where nobody can say, one does: what is attached leaves
// by itself if that was wrong, and an upgrade would have had a gap if the opposite was.
func (s *Successor) Comes(ctx context.Context) (comes bool, why string) {
	ctx, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	var set appsv1.DaemonSet
	var node corev1.Node
	namespace := metadataOf("Namespace")
	err := s.cluster.Get(ctx, s.daemonSet, &set)
	if err == nil {
		err = s.cluster.Get(ctx, client.ObjectKey{Name: s.daemonSet.Namespace}, namespace)
	}
	if err == nil {
		err = s.cluster.Get(ctx, client.ObjectKey{Name: s.node}, &node)
	}
	switch {
	// Who removes the DaemonSet often removes the agents' rights with it, and may do so before the agents have asked.
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return false, fmt.Sprintf("the API server says: %v", err)
	case err != nil:
		return true, fmt.Sprintf("the API server does not say otherwise: %v", err)
	case set.DeletionTimestamp != nil:
		return false, fmt.Sprintf("DaemonSet %s is being deleted", s.daemonSet)
	case namespace.DeletionTimestamp != nil: // pods first, and the DaemonSet when they have gone
		return false, fmt.Sprintf("namespace %s is being deleted", s.daemonSet.Namespace)
	}
	return placed(&set, &node)
}

// placed tells whether the pods of a DaemonSet may be on a node, as its controller decides.
func placed(set *appsv1.DaemonSet, node *corev1.Node) (bool, string) {
	name := set.Namespace + "/" + set.Name
	pod := &corev1.Pod{Spec: set.Spec.Template.Spec}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return false, fmt.Sprintf("DaemonSet %s selects other nodes than %s", name, node.Name)
	}
	if taint, found := scheduling.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, keepsAway, false); found {
		return false, fmt.Sprintf("the pods of DaemonSet %s do not tolerate the taint %s of node %s", name, taint.ToString(), node.Name)
	}
	return true, fmt.Sprintf("DaemonSet %s has a pod on node %s", name, node.Name)
}

// keepsAway tells whether a taint keeps pods of DaemonSets away that do not tolerate it. Kubernetes' own come and go with
// the node's state, and the controller has its pods tolerate them.
func keepsAway(taint *corev1.Taint) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, "node.kubernetes.io/")
}
