package preflight

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What Helm and the chart write on objects.
const (
	partOf           = "app.kubernetes.io/part-of"
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// objectFindings are about objects that have the names of Temper's.
func (c *cluster) objectFindings() (findings []Finding) {
	const name = "objects"
	own := map[string][]string{} // by what made them
	for _, o := range c.there {
		switch called := o.Kind + " " + o.Name; {
		case o.Kind == "CustomResourceDefinition": // its name has Temper's domain, and Helm leaves it as it is
			own[definitions] = append(own[definitions], called)
		case o.Labels[partOf] != "temper":
			findings = append(findings, fail(name, called+" is there, and not of Temper: Helm would refuse to install", "remove or rename it"))
		default:
			own[madeBy(o)] = append(own[madeBy(o)], called)
		}
	}
	for _, by := range slices.Sorted(maps.Keys(own)) {
		findings = append(findings, warn(name, fmt.Sprintf("of Temper there is already, %s: %s", by, strings.Join(own[by], ", ")), cureOf(by)))
	}
	for _, fault := range c.faults {
		findings = append(findings, warn("policy", fault.Error()+"; it counts for no node here", "correct it before you install"))
	}
	if len(findings) > 0 || len(c.hiddenObjects()) > 0 {
		return findings
	}
	return ok(name, "none has a name of Temper's")
}

// The ways in which objects of Temper came to be there, as a finding names them.
const (
	definitions = "definitions that Helm does not upgrade"
	byHand      = "made without Helm"
	byRelease   = "of Helm release "
)

func madeBy(o *metav1.PartialObjectMetadata) string {
	if release := o.Annotations[releaseName]; release != "" {
		return byRelease + release + " in namespace " + o.Annotations[releaseNamespace]
	}
	return byHand
}

func cureOf(by string) string {
	switch by {
	case definitions:
		return "bring them up to date first: kubectl apply --server-side -k packaging/kubernetes/crds"
	case byHand:
		return "go on without Helm, or have Helm take them over: helm install --take-ownership"
	}
	return "install as that release and in that namespace; Helm refuses to take them as another"
}

// hiddenObjects are the objects of which is not known whether they are there.
func (c *cluster) hiddenObjects() (hidden []string) {
	for resource := range c.hidden {
		if strings.Contains(resource, " ") {
			hidden = append(hidden, resource)
		}
	}
	return hidden
}

// neighbours are agents of others that write the same files of the same cgroups, by the name of their image.
var neighbours = []struct{ image, of, writes string }{
	{"koordlet", "Koordinator", "priorities, CPU quotas and cpusets of pods' cgroups"},
	{"katalyst-agent", "Katalyst", "cpusets of pods' cgroups"},
}

// neighbourFindings name DaemonSets of agents that would be at odds with Temper's.
func (c *cluster) neighbourFindings() (findings []Finding) {
	if !c.knows("daemonsets") {
		return nil
	}
	for i := range c.daemonSets {
		set := &c.daemonSets[i]
		for _, n := range neighbours {
			if hasImage(set, n.image) {
				findings = append(findings, warn("neighbours", fmt.Sprintf("DaemonSet %s/%s is %s's agent, which writes %s", set.Namespace, set.Name, n.of, n.writes),
					"keep the two on different nodes, by the chart's value nodeSelector, or turn that off in "+n.of))
			}
		}
	}
	return orOK(findings, "neighbours", "no DaemonSet of Koordinator or Katalyst")
}

func hasImage(set *appsv1.DaemonSet, name string) bool {
	for _, container := range set.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(path.Base(container.Image), "@")
		if image, _, _ = strings.Cut(image, ":"); image == name {
			return true
		}
	}
	return false
}
