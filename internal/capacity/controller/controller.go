// Package controller is what temper-controller does in a cluster: it keeps overcommit's admission policies as the CapacityPolicy
// says, pauses it when nodes are not fit (package guard), and keeps lowered pods from nodes that are not enforced.
//
// One replica works at a time, chosen by a Lease. All that it has to know again after a change of leaders is in the API server.
package controller

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/collect"
	"temper.dev/temper/internal/capacity/overcommit/incluster"
)

// Name is the controller's: of its Lease, and as what it makes events.
const Name = "temper-controller"

// Options are what its flags say.
type Options struct {
	Namespace string        // of the Lease
	Probes    string        // address for /healthz and /readyz; "": none
	Metrics   string        // address for /metrics; "": none
	Every     time.Duration // between two looks at the nodes
	Log       *slog.Logger
}

// none is how the library is told to listen nowhere.
const none = "0"

// Run works while it is the leader, and waits while it is not, until ctx ends. It fails where it has lost the Lease.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	m, err := manager.New(config, manager.Options{
		Scheme:                        collect.Scheme(admissionv1.AddToScheme),
		Logger:                        logr.FromSlogHandler(o.Log.Handler()),
		Metrics:                       server.Options{BindAddress: cmp.Or(o.Metrics, none)},
		HealthProbeBindAddress:        cmp.Or(o.Probes, none),
		LeaderElection:                true,
		LeaderElectionID:              Name,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true, // the program ends after Run
	})
	if err != nil {
		return err
	}
	if _, err := incluster.Read(ctx, m.GetAPIReader()); err != nil {
		return err // before anything waits for a kind that the cluster does not know
	}
	for name, add := range map[string]func(string, healthz.Checker) error{"healthz": m.AddHealthzCheck, "readyz": m.AddReadyzCheck} {
		if err := add(name, healthz.Ping); err != nil {
			return err
		}
	}
	told := &figures{}
	if err := metrics.Registry.Register(told); err != nil {
		return err
	}
	p := &policies{cluster: m.GetClient(), live: m.GetAPIReader(), events: m.GetEventRecorder(Name), every: o.Every, now: time.Now, told: told}
	if err := p.watch(m); err != nil {
		return err
	}
	n := &nodes{cluster: m.GetClient(), now: time.Now}
	if err := n.watch(m); err != nil {
		return err
	}
	return m.Start(ctx)
}

// policyKey is the one CapacityPolicy.
var policyKey = client.ObjectKey{Name: v1alpha1.CapacityPolicyName}

// listed is a list's objects, from the manager's cache.
func listed[T any](ctx context.Context, cluster client.Reader, list client.ObjectList, items func() []T) ([]*T, error) {
	if err := cluster.List(ctx, list); err != nil {
		return nil, err
	}
	var all []*T
	for _, item := range items() {
		all = append(all, &item)
	}
	return all, nil
}

func tierPolicies(ctx context.Context, cluster client.Reader) ([]*v1alpha1.TierPolicy, error) {
	var list v1alpha1.TierPolicyList
	return listed(ctx, cluster, &list, func() []v1alpha1.TierPolicy { return list.Items })
}

func autoscalers(ctx context.Context, cluster client.Reader) ([]*autoscalingv2.HorizontalPodAutoscaler, error) {
	var list autoscalingv2.HorizontalPodAutoscalerList
	return listed(ctx, cluster, &list, func() []autoscalingv2.HorizontalPodAutoscaler { return list.Items })
}

func nodesOf(ctx context.Context, cluster client.Reader) ([]*corev1.Node, error) {
	var list corev1.NodeList
	return listed(ctx, cluster, &list, func() []corev1.Node { return list.Items })
}
