package preflight

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/policy"
)

// cluster is what was seen of a cluster.
type cluster struct {
	temper     *temper
	version    string
	nodes      []corev1.Node
	namespaces map[string]labels.Set
	pods       []corev1.Pod // that have not ended
	policies   []*policy.Policy

	services    []corev1.Service
	quotas      []corev1.ResourceQuota // of the agents' namespace, as are limits
	limits      []corev1.LimitRange
	validating  []admissionv1.ValidatingWebhookConfiguration
	mutating    []admissionv1.MutatingWebhookConfiguration
	apiServices []unstructured.Unstructured
	definitions []apiextensionsv1.CustomResourceDefinition
	leases      []coordinationv1.Lease
	daemonSets  []appsv1.DaemonSet

	there    []*metav1.PartialObjectMetadata // objects with names of Temper's
	unserved []string                        // kinds that Temper needs, and the API server has not
	faults   []error                         // policies that are not valid

	hidden map[string]error // by resource; what could not be read
}

// scheme has what is read as types.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, admissionv1.AddToScheme,
		apiextensionsv1.AddToScheme, coordinationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}()

// look reads a cluster. The first question tells whether it answers at all.
func look(ctx context.Context, config *rest.Config, t *temper) (*cluster, error) {
	asking, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &cluster{temper: t, hidden: map[string]error{}}
	switch version, err := asking.ServerVersion(); {
	case apierrors.IsForbidden(err):
		c.hidden["version"] = err
	case err != nil:
		return nil, fmt.Errorf("the cluster does not answer: %w", err)
	default:
		c.version = version.GitVersion
	}
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	c.readLists(ctx, reader)
	c.readObjects(ctx, reader)
	return c, ctx.Err()
}

func (c *cluster) readLists(ctx context.Context, reader client.Reader) {
	var (
		nodes       corev1.NodeList
		namespaces  metav1.PartialObjectMetadataList
		pods        corev1.PodList
		services    corev1.ServiceList
		quotas      corev1.ResourceQuotaList
		limits      corev1.LimitRangeList
		validating  admissionv1.ValidatingWebhookConfigurationList
		mutating    admissionv1.MutatingWebhookConfigurationList
		apiServices unstructured.UnstructuredList
		definitions apiextensionsv1.CustomResourceDefinitionList
		leases      coordinationv1.LeaseList
		daemonSets  appsv1.DaemonSetList
		policies    v1alpha1.TierPolicyList
	)
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	apiServices.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIServiceList"})
	own := client.InNamespace(c.temper.namespace)
	for _, list := range []struct {
		resource string
		into     client.ObjectList
		options  []client.ListOption
	}{
		{"nodes", &nodes, nil}, {"namespaces", &namespaces, nil}, {"pods", &pods, []client.ListOption{client.MatchingFieldsSelector{Selector: running}}},
		{"services", &services, nil}, {"resourcequotas", &quotas, []client.ListOption{own}}, {"limitranges", &limits, []client.ListOption{own}},
		{"validatingwebhookconfigurations", &validating, nil}, {"mutatingwebhookconfigurations", &mutating, nil}, {"apiservices", &apiServices, nil},
		{"customresourcedefinitions", &definitions, nil}, {"leases", &leases, nil}, {"daemonsets", &daemonSets, nil}, {"tierpolicies", &policies, nil},
	} {
		c.hide(list.resource, reader.List(ctx, list.into, list.options...))
	}
	c.nodes, c.pods, c.services, c.quotas, c.limits = nodes.Items, pods.Items, services.Items, quotas.Items, limits.Items
	c.validating, c.mutating, c.apiServices, c.definitions = validating.Items, mutating.Items, apiServices.Items, definitions.Items
	c.leases, c.daemonSets = leases.Items, daemonSets.Items
	c.namespaces = map[string]labels.Set{}
	for _, n := range namespaces.Items {
		c.namespaces[n.Name] = n.Labels
	}
	c.compile(policies.Items)
}

// running are the pods that have not ended.
var running = fields.AndSelectors(fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))

// compile takes policies that are there from before, and the chart's own where none has its name.
func (c *cluster) compile(there []v1alpha1.TierPolicy) {
	if !slices.ContainsFunc(there, func(p v1alpha1.TierPolicy) bool { return p.Name == c.temper.policy.Name }) {
		there = append(there, *c.temper.policy)
	}
	for i := range there {
		p, err := policy.Compile(&there[i])
		if err != nil {
			c.faults = append(c.faults, err)
			continue
		}
		c.policies = append(c.policies, p)
	}
}

// readObjects looks for objects that have the names of Temper's, and for kinds that the API server lacks.
func (c *cluster) readObjects(ctx context.Context, reader client.Reader) {
	for _, o := range c.temper.objects {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(o.GroupVersionKind())
		err := reader.Get(ctx, client.ObjectKeyFromObject(o), found)
		own := o.GroupVersionKind().Group == v1alpha1.GroupVersion.Group
		switch {
		case err == nil:
			c.there = append(c.there, found)
		case meta.IsNoMatchError(err) && !own: // its own are defined as it is installed
			if kind := o.GetKind() + " of " + o.GetAPIVersion(); !slices.Contains(c.unserved, kind) {
				c.unserved = append(c.unserved, kind)
			}
		case !apierrors.IsNotFound(err):
			c.hide(strings.ToLower(o.GetKind()+" "+o.GetName()), err)
		}
	}
}

// hide remembers that something could not be read. A kind that the API server does not know has no objects.
func (c *cluster) hide(resource string, err error) {
	if err != nil && !meta.IsNoMatchError(err) {
		c.hidden[resource] = err
	}
}

// knows is whether all of these could be read.
func (c *cluster) knows(resources ...string) bool {
	return !slices.ContainsFunc(resources, func(r string) bool { return c.hidden[r] != nil })
}

// hiddenFindings name what could not be read.
func (c *cluster) hiddenFindings() (findings []Finding) {
	for _, resource := range slices.Sorted(maps.Keys(c.hidden)) {
		err := c.hidden[resource]
		cure := "try again, or give more time by --request-timeout"
		if apierrors.IsForbidden(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnauthorized {
			verb := "list " + resource
			if kind, name, one := strings.Cut(resource, " "); one {
				verb = "get " + kind + "s " + name
			}
			cure = "ask as somebody who may " + verb
		}
		findings = append(findings, Finding{resource, Unknown, "could not be read: " + firstLine(err), cure})
	}
	return findings
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if text == "" {
		return http.StatusText(http.StatusInternalServerError)
	}
	return text
}
