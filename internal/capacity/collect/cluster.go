package collect

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/snapshot"
	"temper.dev/temper/internal/cluster/fleet"
)

// FromCluster reads a cluster. A list that cannot be read ends it: what is missing would look as if it were not there.
func FromCluster(ctx context.Context, cluster client.Reader, now time.Time) (*Result, error) {
	s := &snapshot.Snapshot{}
	return readLists(s, now, append(basics(ctx, cluster, s), []list{
		{"priority classes", false, into(ctx, cluster, &schedulingv1.PriorityClassList{}, &s.PriorityClasses)},
		{"PodDisruptionBudgets", false, into(ctx, cluster, &policyv1.PodDisruptionBudgetList{}, &s.PodDisruptionBudgets)},
		{"persistent volumes", false, into(ctx, cluster, &corev1.PersistentVolumeList{}, &s.PersistentVolumes)},
		{"persistent volume claims", false, into(ctx, cluster, &corev1.PersistentVolumeClaimList{}, &s.PersistentVolumeClaims)},
		{"storage classes", false, into(ctx, cluster, &storagev1.StorageClassList{}, &s.StorageClasses)},
		{"CSI nodes", false, into(ctx, cluster, &storagev1.CSINodeList{}, &s.CSINodes)},
		{"volume attachments", false, into(ctx, cluster, &storagev1.VolumeAttachmentList{}, &s.VolumeAttachments)},
		{"services", false, into(ctx, cluster, &corev1.ServiceList{}, &s.Services)},
		{"replication controllers", false, into(ctx, cluster, &corev1.ReplicationControllerList{}, &s.ReplicationControllers)},
		{"replica sets", false, into(ctx, cluster, &appsv1.ReplicaSetList{}, &s.ReplicaSets)},
		{"stateful sets", false, into(ctx, cluster, &appsv1.StatefulSetList{}, &s.StatefulSets)},
	}...))
}

// ForOvercommit reads of a cluster what overcommit rests on: pods, nodes, who is critical, and what is scaled.
func ForOvercommit(ctx context.Context, cluster client.Reader, now time.Time) (*Result, error) {
	s := &snapshot.Snapshot{}
	return readLists(s, now, basics(ctx, cluster, s))
}

// list is one that is read into a part of a snapshot.
type list struct {
	what     string
	optional bool // Temper's own, which a cluster may not know yet
	read     func() error
}

func basics(ctx context.Context, cluster client.Reader, s *snapshot.Snapshot) []list {
	return []list{
		{"pods", false, into(ctx, cluster, &corev1.PodList{}, &s.Pods)},
		{"nodes", false, into(ctx, cluster, &corev1.NodeList{}, &s.Nodes)},
		{"namespaces", false, into(ctx, cluster, &corev1.NamespaceList{}, &s.Namespaces)},
		{"autoscalers", false, into(ctx, cluster, &autoscalingv2.HorizontalPodAutoscalerList{}, &s.Autoscalers)},
		{"TemperNodes", true, into(ctx, cluster, &v1alpha1.TemperNodeList{}, &s.TemperNodes)},
		{"TierPolicies", true, into(ctx, cluster, &v1alpha1.TierPolicyList{}, &s.TierPolicies)},
	}
}

func readLists(s *snapshot.Snapshot, now time.Time, lists []list) (*Result, error) {
	r := &Result{Snapshot: s}
	installed := true
	for _, l := range lists {
		err := l.read()
		switch {
		case l.optional && meta.IsNoMatchError(err):
			installed = false
		case err != nil:
			return nil, fmt.Errorf("list %s: %w", l.what, err)
		}
	}
	r.tidy(now)
	if !installed {
		return r, r.standIn()
	}
	return r, nil
}

// into reads a list into a part of the snapshot.
func into[T any](ctx context.Context, cluster client.Reader, list client.ObjectList, to *[]*T) func() error {
	return func() error {
		if err := cluster.List(ctx, list); err != nil {
			return err
		}
		return meta.EachListItem(list, func(o runtime.Object) error {
			*to = append(*to, any(o).(*T))
			return nil
		})
	}
}

// tidy makes of lists that were read one after another a snapshot of one moment.
func (r *Result) tidy(now time.Time) {
	for _, pod := range r.Pods {
		slim(pod)
	}
	for _, node := range r.Nodes {
		forget(&node.ObjectMeta)
	}
	r.dropStrays("they are left out", true)
	r.leaveOut()
	for _, report := range r.TemperNodes {
		if fleet.IsStale(report, now) {
			report.Status.Conditions = slices.DeleteFunc(report.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionEnforced })
			r.note("the report of node %s is too old to count: its agent is gone, or cannot reach the API server", report.Name)
		}
	}
}

// LimitRanges are those of a cluster. No plan rests on them.
func LimitRanges(ctx context.Context, cluster client.Reader) (limits []*corev1.LimitRange, err error) {
	if err := into(ctx, cluster, &corev1.LimitRangeList{}, &limits)(); err != nil {
		return nil, fmt.Errorf("list LimitRanges: %w", err)
	}
	return limits, nil
}
