// Package engine decides where pods go, with kube-scheduler's own Filter and Score plugins in its default profile, on a
// snapshot that it may change: no API server, no client, and no chance but what a seed gives.
//
// The cycle of one pod (Schedule) follows kube-scheduler's schedulePod step by step, since that function draws ties from a
// generator that cannot be seeded. What a real scheduler leaves to chance, the seed decides: the order in which nodes are
// looked at, and which of equally good nodes wins. So one seed is one way in which the real scheduler could go, and who
// wants to know all of them tries many seeds.
//
// What is left out: DynamicResources, whose devices a snapshot does not have (pods with resource claims are to stay where
// they are), and preemption: who does not fit is Unschedulable, so nobody is ever displaced.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	pluginfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"temper.dev/temper/internal/capacity/snapshot"
)

// Engine is kube-scheduler on a cluster that stands still but for what the caller does to it. It is for one goroutine.
type Engine struct {
	ctx       context.Context
	framework framework.Framework
	cluster   *cluster
	chance    *rand.Rand
	next      int // index of the node that the next search starts with, as in kube-scheduler
}

// Unschedulable says that a pod fits nowhere, and why, in kube-scheduler's own words.
type Unschedulable struct{ fit *framework.FitError }

func (u *Unschedulable) Error() string { return u.fit.Error() }

// The scheduler's metrics are variables of its packages, and nil until somebody registers them.
var register = sync.OnceFunc(metrics.Register)

// New makes an engine on a snapshot, which it does not change. Its pods are where they are; those without a node are
// nowhere, until the caller binds them. The engine's goroutines end with ctx.
func New(ctx context.Context, s *snapshot.Snapshot) (*Engine, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	register()
	ctx = klog.NewContext(ctx, klog.Logger{})
	c, err := newCluster(s)
	if err != nil {
		return nil, err
	}
	profile, err := defaultProfile()
	if err != nil {
		return nil, err
	}
	objects, err := informersOf(s)
	if err != nil {
		return nil, err
	}
	f, err := runtime.NewFramework(ctx, registry(), profile,
		runtime.WithSnapshotSharedLister(c),
		runtime.WithInformerFactory(objects),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(objects.Storage().V1().CSINodes().Lister())),
		runtime.WithPodNominator(nobodyNominated{}),
		// More would only divide work among the CPUs that other engines are on.
		runtime.WithParallelism(1),
		runtime.WithLogger(klog.Logger{}),
	)
	if err != nil {
		return nil, fmt.Errorf("kube-scheduler's plugins do not start: %w", err)
	}
	e := &Engine{ctx: ctx, framework: f, cluster: c}
	e.Reset(0)
	return e, nil
}

// defaultProfile is kube-scheduler's, without the plugin whose objects a snapshot does not have.
func defaultProfile() (*config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("kube-scheduler's default configuration: %w", err)
	}
	profile := &defaults.Profiles[0]
	multi := &profile.Plugins.MultiPoint
	multi.Enabled = slices.DeleteFunc(multi.Enabled, func(p config.Plugin) bool {
		return p.Name == names.DynamicResources || p.Name == names.DefaultPreemption
	})
	return profile, nil
}

// registry has kube-scheduler's plugins. Those of resources do not look for devices behind extended resources: they would
// ask a manager of devices, which there is not.
func registry() runtime.Registry {
	r := plugins.NewInTreeRegistry()
	features := pluginfeature.NewSchedulerFeaturesFromGates(feature.DefaultFeatureGate)
	features.EnableDRAExtendedResource = false
	r[noderesources.Name] = runtime.FactoryAdapter(features, noderesources.NewFit)
	r[noderesources.BalancedAllocationName] = runtime.FactoryAdapter(features, noderesources.NewBalancedAllocation)
	return r
}

// informersOf has the snapshot's objects in the stores of informers that never start, and so need no client.
func informersOf(s *snapshot.Snapshot) (informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactory(nil, 0)
	core, apps, storage := factory.Core().V1(), factory.Apps().V1(), factory.Storage().V1()
	for _, err := range []error{
		fill(core.Namespaces().Informer(), s.Namespaces),
		fill(core.PersistentVolumes().Informer(), s.PersistentVolumes),
		fill(core.PersistentVolumeClaims().Informer(), s.PersistentVolumeClaims),
		fill(core.Services().Informer(), s.Services),
		fill(core.ReplicationControllers().Informer(), s.ReplicationControllers),
		fill(apps.ReplicaSets().Informer(), s.ReplicaSets),
		fill(apps.StatefulSets().Informer(), s.StatefulSets),
		fill(storage.StorageClasses().Informer(), s.StorageClasses),
		fill(storage.CSINodes().Informer(), s.CSINodes),
		fill(storage.VolumeAttachments().Informer(), s.VolumeAttachments),
	} {
		if err != nil {
			return nil, err
		}
	}
	return factory, nil
}

func fill[T any](informer cache.SharedIndexInformer, objects []T) error {
	for _, object := range objects {
		if err := informer.GetIndexer().Add(object); err != nil {
			return fmt.Errorf("an object of the snapshot has no name: %w", err)
		}
	}
	return nil
}

// Reset takes back all that was done since New, and lets another seed decide from now on.
func (e *Engine) Reset(seed uint64) {
	e.cluster.undo()
	e.chance = rand.New(rand.NewPCG(seed, 0))
	e.cluster.order(e.chance)
	e.next = 0
}

// Cordon marks a node as unschedulable, or no longer so.
func (e *Engine) Cordon(node string, on bool) { e.cluster.cordon(node, on) }

// Bind puts a pod on a node, whether it fits or not.
func (e *Engine) Bind(pod *corev1.Pod, node string) error { return e.cluster.bind(pod, node) }

// Remove takes a pod from its node.
func (e *Engine) Remove(pod *corev1.Pod, node string) error {
	return e.cluster.remove(pod, node)
}

// Schedule finds a pod's node as kube-scheduler would, and does not bind it. A pod that fits nowhere gives an
// *Unschedulable; any other error is one of the snapshot, such as a claim that does not exist.
func (e *Engine) Schedule(pod *corev1.Pod) (node string, err error) {
	state := framework.NewCycleState()
	feasible, err := e.feasible(state, pod)
	if err != nil {
		return "", err
	}
	if len(feasible) == 1 {
		return feasible[0].Node().Name, nil
	}
	if status := e.framework.RunPreScorePlugins(e.ctx, state, pod, feasible); !status.IsSuccess() {
		return "", fmt.Errorf("scoring nodes for pod %s: %w", snapshot.Key(pod), status.AsError())
	}
	scores, status := e.framework.RunScorePlugins(e.ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return "", fmt.Errorf("scoring nodes for pod %s: %w", snapshot.Key(pod), status.AsError())
	}
	return e.best(scores), nil
}

// best is the node with the highest score; of several, the seed's.
func (e *Engine) best(scores []fwk.NodePluginScores) string {
	top := slices.MaxFunc(scores, func(a, b fwk.NodePluginScores) int { return cmp.Compare(a.TotalScore, b.TotalScore) }).TotalScore
	ties := slices.DeleteFunc(scores, func(s fwk.NodePluginScores) bool { return s.TotalScore < top })
	return ties[e.chance.IntN(len(ties))].Name
}

// feasible are nodes that pass all filters: at least one, and in a large cluster not all, as in kube-scheduler.
func (e *Engine) feasible(state fwk.CycleState, pod *corev1.Pod) ([]fwk.NodeInfo, error) {
	all := e.cluster.list
	misfits := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	result, status, _ := e.framework.RunPreFilterPlugins(e.ctx, state, pod)
	switch {
	case status.IsRejected():
		misfits.NodeToStatus.SetAbsentNodesStatus(status)
		misfits.PreFilterMsg = status.Message()
		return nil, &Unschedulable{&framework.FitError{Pod: pod, NumAllNodes: len(all), Diagnosis: misfits}}
	case !status.IsSuccess():
		return nil, fmt.Errorf("pod %s cannot be scheduled with what the snapshot has: %w", snapshot.Key(pod), status.AsError())
	}
	nodes := all
	if !result.AllNodes() {
		nodes = nil
		for _, info := range all {
			if result.NodeNames.Has(info.Node().Name) {
				nodes = append(nodes, info)
			}
		}
		misfits.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) are ruled out by the pod's node affinity"))
	}
	found, looked, err := e.search(state, pod, nodes, misfits)
	if err != nil {
		return nil, err
	}
	e.next = (e.next + looked) % max(len(all), 1)
	if len(found) == 0 {
		return nil, &Unschedulable{&framework.FitError{Pod: pod, NumAllNodes: len(all), Diagnosis: misfits}}
	}
	return found, nil
}

// search looks at nodes, from where the last search ended, until it has found enough. It notes why the others do not fit.
func (e *Engine) search(state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo, misfits framework.Diagnosis) (found []fwk.NodeInfo, looked int, err error) {
	enough := enoughNodes(len(nodes))
	for i := range nodes {
		info := nodes[(e.next+i)%len(nodes)]
		status := e.framework.RunFilterPlugins(e.ctx, state, pod, info)
		looked++
		switch {
		case status.IsRejected():
			misfits.NodeToStatus.Set(info.Node().Name, status)
			continue
		case !status.IsSuccess():
			return nil, looked, fmt.Errorf("pod %s on node %s: %w", snapshot.Key(pod), info.Node().Name, status.AsError())
		}
		if found = append(found, info); len(found) == enough {
			break
		}
	}
	return found, looked, nil
}

// enoughNodes is how many feasible nodes kube-scheduler looks for by default: all of 100, from there on a share that falls
// from 50 to 5 per cent, and 100 at least.
func enoughNodes(all int) int {
	return min(all, max(100, all*max(5, 50-all/125)/100))
}

// nobodyNominated is the list of pods for which others are being displaced: the engine displaces nobody.
type nobodyNominated struct{}

func (nobodyNominated) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (nobodyNominated) DeleteNominatedPodIfExists(*corev1.Pod)                        {}
func (nobodyNominated) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo)      {}
func (nobodyNominated) NominatedPodsForNode(string) []fwk.PodInfo                     { return nil }
