package nodepods

import (
	"context"
	"errors"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
)

// cluster is what the agent watches of a cluster: its own node and the pods on it, namespaces, and policies. Of each
// object it keeps what tiers depend on, and no more.
type cluster struct {
	cache   cache.Cache
	changed chan struct{}

	hearing *hearing // of what is watched

	mu     sync.Mutex
	stale  bool  // something has changed since it was last read
	report error // why the node's last report did not reach the API server
}

// kinds are what is watched. PartialObjectMetadata: labels alone, since nodes are large and namespaces many.
func kinds(node string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:           {Field: fields.OneTermEqualSelector("spec.nodeName", node), Transform: trimPod},
		metadataOf("Node"):      {Field: fields.OneTermEqualSelector("metadata.name", node), Transform: trimMetadata},
		metadataOf("Namespace"): {Transform: trimMetadata},
		&v1alpha1.TierPolicy{}:  {},
	}
}

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return object
}

// watch watches a cluster until ctx ends. It does not wait: the API server may be away.
func watch(ctx context.Context, config *rest.Config, node string) (*cluster, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c := &cluster{changed: make(chan struct{}, 1), stale: true}
	c.hearing = &hearing{changed: c.wake, faults: map[string]error{}}
	config = rest.CopyConfig(config)
	config.Wrap(c.hearing.over)
	shared := true // objects are only read
	c.cache, err = cache.New(config, cache.Options{
		Scheme: scheme, Mapper: mapper(), ByObject: kinds(node), DefaultUnsafeDisableDeepCopy: &shared,
		DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {}, // hearing tells, once
	})
	if err != nil {
		return nil, err
	}
	for object := range kinds(node) {
		informer, err := c.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { c.tell() }, UpdateFunc: c.compare, DeleteFunc: func(any) { c.tell() },
		}); err != nil {
			return nil, err
		}
	}
	go c.cache.Start(ctx)
	go func() {
		if c.cache.WaitForCacheSync(ctx) {
			c.tell() // also where there is not one object
		}
	}()
	return c, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// newClient makes one that asks the API server each time.
func newClient(config *rest.Config) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper()})
}

// mapper knows all kinds that the agent asks for, so that nothing needs to be asked of an API server that is away.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Node", "Namespace"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{"Pod", "Event"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(appsv1.SchemeGroupVersion.WithKind("DaemonSet"), meta.RESTScopeNamespace)
	for _, kind := range []string{"TierPolicy", "TemperNode"} {
		m.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	return m
}

// compare tells of an update that changes what is kept of the object: a pod's status is written far more often than
// what its tier depends on.
func (c *cluster) compare(before, after any) {
	old, isObject := before.(client.Object)
	now, areObjects := after.(client.Object)
	if isObject && areObjects {
		old = old.DeepCopyObject().(client.Object)
		old.SetResourceVersion(now.GetResourceVersion())
		if pod, isPod := old.(*corev1.Pod); isPod && !ended(now.(*corev1.Pod).Status.Phase) {
			pod.Status.Phase = now.(*corev1.Pod).Status.Phase // its tier is the same before it runs and while it does
		}
		if equality.Semantic.DeepEqual(old, now) {
			return
		}
	}
	c.tell()
}

// tell says that something has changed.
func (c *cluster) tell() {
	c.mu.Lock()
	c.stale = true
	c.mu.Unlock()
	c.wake()
}

func (c *cluster) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// reported keeps how a report went. Watches say nothing of an API server that takes no connections.
func (c *cluster) reported(err error) {
	c.mu.Lock()
	changed := (err == nil) != (c.report == nil)
	c.report = err
	c.mu.Unlock()
	if changed {
		c.wake()
	}
}
