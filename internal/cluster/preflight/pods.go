package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/explain"
	"temper.dev/temper/internal/cluster/policy"
)

// Pod is the tier that a pod would be in, and what should be known of it before that.
type Pod struct {
	explain.Answer
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"` // what makes pods like it, as Deployment/shop/web; else the pod itself
	// What else depends on the pod, where it would be in background and nobody asked for that by a label.
	Depends []string `json:"depends,omitempty"`
}

// What has to be known to say which tier a pod would be in, and what depends on it.
var (
	tiersNeed      = []string{"pods", "nodes", "namespaces", "tierpolicies"}
	dependentsNeed = []string{"services", "validatingwebhookconfigurations", "mutatingwebhookconfigurations", "apiservices", "customresourcedefinitions", "leases"}
)

// noAgent is said of pods whose node would have no agent.
const noAgent = "no (its node would have no agent)"

// tiers is what would become of the cluster's pods, by name. Without their nodes or namespaces nothing can be said.
func (c *cluster) tiers(groups []Group) []Pod {
	pods := []Pod{}
	if !c.knows(tiersNeed...) {
		return pods
	}
	nodes := map[string]labels.Set{}
	for i := range c.nodes {
		nodes[c.nodes[i].Name] = c.nodes[i].Labels
	}
	bare := map[string]bool{} // nodes that would have no agent
	for _, g := range groups {
		for _, name := range g.Names {
			bare[name] = !g.Agent
		}
	}
	depends := c.dependents()
	for i := range c.pods {
		pod := &c.pods[i]
		in := &policy.Namespace{Name: pod.Namespace, Labels: c.namespaces[pod.Namespace]}
		p := Pod{Answer: explain.Of(pod, in, c.policies, nodes), Namespace: pod.Namespace, Workload: workload(pod)}
		asked := pod.Labels[v1alpha1.TierLabel] == p.Tier.String() || in.Labels[v1alpha1.HighestTierLabel] == p.Tier.String()
		switch {
		case bare[pod.Spec.NodeName]:
			p.InForce = noAgent
		case p.Tier == tier.Background && !asked:
			p.Depends = depends(pod)
		}
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// workload is what makes pods like this one.
func workload(pod *corev1.Pod) string {
	kind, name := "Pod", pod.Name
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind != "Node" { // a Node owns its static pods
		kind, name = owner.Kind, owner.Name
		if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; kind == "ReplicaSet" && hash != "" {
			kind, name = "Deployment", strings.TrimSuffix(name, "-"+hash)
		}
	}
	return kind + "/" + pod.Namespace + "/" + name
}

// dependents makes a function that says what depends on a pod: the node, the cluster, or what a Service answers for.
func (c *cluster) dependents() func(*corev1.Pod) []string {
	backends := c.backends()
	leaders := map[string]string{} // by namespace/name of the pod
	for i := range c.leases {
		lease := &c.leases[i]
		if holder := lease.Spec.HolderIdentity; holder != nil && lease.Namespace != corev1.NamespaceNodeLease {
			// Controllers call themselves by their pod's name, most with a random part behind '_', which no pod's name has.
			pod, _, _ := strings.Cut(*holder, "_")
			leaders[lease.Namespace+"/"+pod] = lease.Name
		}
	}
	return func(pod *corev1.Pod) (why []string) {
		if by := policy.OfTheSystem(pod); by != "" {
			why = append(why, "it is "+by)
		}
		for _, b := range backends[pod.Namespace] {
			if b.selector.Matches(labels.Set(pod.Labels)) {
				why = append(why, "it answers for "+b.of)
			}
		}
		if lease, leads := leaders[pod.Namespace+"/"+pod.Name]; leads {
			why = append(why, "it leads, by Lease "+lease)
		}
		return why
	}
}

// backend is which pods answer for something that the API server asks.
type backend struct {
	of       string
	selector labels.Selector
}

// serviceRef is a Service that the API server asks, and for what.
type serviceRef struct{ namespace, name, of string }

// backends are by namespace. A Service without a selector, whose endpoints somebody else writes, selects none.
func (c *cluster) backends() map[string][]backend {
	selectors := map[[2]string]map[string]string{}
	for i := range c.services {
		selectors[[2]string{c.services[i].Namespace, c.services[i].Name}] = c.services[i].Spec.Selector
	}
	all := map[string][]backend{}
	for _, ref := range c.serviceRefs() {
		if selector := selectors[[2]string{ref.namespace, ref.name}]; len(selector) > 0 {
			all[ref.namespace] = append(all[ref.namespace], backend{ref.of, labels.SelectorFromSet(selector)})
		}
	}
	return all
}

// serviceRefs are the Services that webhooks, API services and conversions of definitions name.
func (c *cluster) serviceRefs() (refs []serviceRef) {
	for _, w := range c.webhooks() {
		if s := w.client.Service; s != nil {
			refs = append(refs, serviceRef{s.Namespace, s.Name, w.String()})
		}
	}
	for _, s := range c.apiServices {
		// Those that the API server serves itself have no service.
		namespace, _, _ := unstructured.NestedString(s.Object, "spec", "service", "namespace")
		if name, found, _ := unstructured.NestedString(s.Object, "spec", "service", "name"); found {
			refs = append(refs, serviceRef{namespace, name, "APIService " + s.GetName()})
		}
	}
	for i := range c.definitions {
		d := &c.definitions[i]
		if conversion := d.Spec.Conversion; conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil && conversion.Webhook.ClientConfig.Service != nil {
			s := conversion.Webhook.ClientConfig.Service
			refs = append(refs, serviceRef{s.Namespace, s.Name, "the conversion of " + d.Name})
		}
	}
	return refs
}

// surprises name, workload by workload, the pods in background that something depends on.
func (c *cluster) surprises(pods []Pod) (findings []Finding) {
	type surprise struct {
		pods    int
		reason  string
		depends []string
	}
	of := map[string]*surprise{}
	var order []string
	for _, p := range pods {
		if len(p.Depends) == 0 {
			continue
		}
		s := of[p.Workload]
		if s == nil {
			s = &surprise{reason: p.Reason}
			of[p.Workload] = s
			order = append(order, p.Workload)
		}
		s.pods++
		for _, d := range p.Depends {
			if !slices.Contains(s.depends, d) {
				s.depends = append(s.depends, d)
			}
		}
	}
	slices.Sort(order)
	for _, name := range order {
		s := of[name]
		findings = append(findings, warn("background", fmt.Sprintf("%s (%d of its pods) would be background by %s: %s", name, s.pods, s.reason, strings.Join(s.depends, ", ")),
			"request CPU for its containers, or where its class or priority says background give it another; if it is meant, label it "+v1alpha1.TierLabel+"=background"))
	}
	if len(findings) > 0 || !c.knows(tiersNeed...) || !c.knows(dependentsNeed...) {
		return findings
	}
	return ok("background", "no pod would be in it that node or cluster depend on")
}
