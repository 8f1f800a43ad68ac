package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"temper.dev/temper/internal/node/kernels"
)

// oldest is the oldest Kubernetes that the chart takes (kubeVersion), and whose kubelet knows all that it asks for.
const oldest = "1.30"

// The rungs that a kernel's version leads to.
const (
	rungScx  = "scx"
	rungIdle = "cpu.idle"
)

// Kind is what a node says of itself: nodes that say the same are one group.
type Kind struct {
	Kernel       string `json:"kernel"`
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Runtime      string `json:"runtime"`
	Kubelet      string `json:"kubelet"`
	Agent        bool   `json:"agent"` // one would run there
	// What it could enforce there at best, by the kernel's version: scx or cpu.idle; none where that cannot be told.
	Rung string `json:"rung,omitempty"`
	// Why, or why there would be no agent.
	Because string `json:"because"`
	// No machine of its own: the agent's pod would be bound to it, and never run.
	Virtual bool `json:"virtual,omitempty"`
}

// Group is nodes of one kind.
type Group struct {
	Kind
	Count int      `json:"count"`
	Names []string `json:"names"`
}

// groups are the cluster's nodes, the largest group first.
func (c *cluster) groups() []Group {
	named := map[Kind][]string{}
	for i := range c.nodes {
		kind := c.kindOf(&c.nodes[i])
		named[kind] = append(named[kind], c.nodes[i].Name)
	}
	groups := []Group{}
	for kind, names := range named {
		slices.Sort(names)
		groups = append(groups, Group{kind, len(names), names})
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Names[0], b.Names[0]))
	})
	return groups
}

func (c *cluster) kindOf(node *corev1.Node) Kind {
	info := node.Status.NodeInfo
	k := Kind{Kernel: info.KernelVersion, Architecture: info.Architecture, OS: cmp.Or(info.OSImage, info.OperatingSystem),
		Runtime: info.ContainerRuntimeVersion, Kubelet: info.KubeletVersion}
	selector := c.temper.agent.Spec.Template.Spec.NodeSelector
	for _, label := range slices.Sorted(maps.Keys(selector)) {
		if has := node.Labels[label]; has != selector[label] {
			k.Because = fmt.Sprintf("%s is %s, and the agent is for %s", label, cmp.Or(has, "not there"), selector[label])
			return k
		}
	}
	if by := virtual(node); by != "" {
		k.Virtual, k.Because = true, by
		return k
	}
	k.Agent = true
	switch has, err := kernels.HasSchedExt(k.Kernel); {
	case err != nil:
		k.Because = err.Error()
	case has:
		k.Rung, k.Because = rungScx, "if its kernel was built with sched_ext"
	default:
		k.Rung, k.Because = rungIdle, "its kernel is older than "+kernels.First+", the first with sched_ext"
	}
	return k
}

// virtual says by what a node is known to be no machine, on which no DaemonSet's pod runs; "": by nothing.
func virtual(node *corev1.Node) string {
	for _, l := range []struct{ label, value string }{{"type", "virtual-kubelet"}, {"eks.amazonaws.com/compute-type", "fargate"}} {
		if node.Labels[l.label] == l.value {
			return "virtual node, by its label " + l.label + "=" + l.value
		}
	}
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return strings.HasPrefix(t.Key, "virtual-kubelet.io/") }) {
		return "virtual node, by a taint of virtual-kubelet.io"
	}
	return ""
}

// agents are how many nodes would have one.
func agents(groups []Group) int { return count(groups, func(g Group) bool { return g.Agent }) }

func count(groups []Group, these func(Group) bool) (nodes int) {
	for _, g := range groups {
		if these(g) {
			nodes += g.Count
		}
	}
	return nodes
}

func (c *cluster) nodeFindings(groups []Group) (findings []Finding) {
	if !c.knows("nodes") {
		return nil
	}
	all := len(c.nodes)
	with := agents(groups)
	switch {
	case all == 0:
		return []Finding{fail("nodes", "the cluster has none", "add a node, and ask again")}
	case with == 0:
		findings = append(findings, fail("nodes", fmt.Sprintf("none of %d would have an agent", all), "add nodes of Linux on amd64 with kernel "+kernels.First+" or later"))
	case with < all:
		findings = append(findings, warn("nodes", fmt.Sprintf("%d of %d would have an agent; on the others pods have no tiers", with, all),
			"none needed, if that is as you want it; the table says why"))
	default:
		findings = ok("nodes", fmt.Sprintf("%d of %d would have an agent", with, all))
	}
	for _, rule := range []struct {
		name, found, cure string
		these             func(Group) bool
	}{
		{"kernel", "rung cpu.idle at best, since the kernel is older than " + kernels.First, kernels.Cure, func(g Group) bool { return g.Rung == rungIdle }},
		{"kernel", "the kernel's version cannot be understood", "ask 'temper doctor' on the node", func(g Group) bool { return g.Agent && g.Rung == "" }},
		{"virtual-node", "virtual; the agent's pod would be bound there, and never run",
			"keep it away by the chart's value affinity, as in nodeAffinity with type NotIn [virtual-kubelet]", func(g Group) bool { return g.Virtual }},
		{"kubelet", "the kubelet is older than " + oldest + ", and does not know the agent's AppArmor profile", "bring the kubelet to " + oldest + " or later",
			func(g Group) bool { return g.Agent && olderThan(g.Kubelet, oldest) }},
	} {
		if n := count(groups, rule.these); n > 0 {
			findings = append(findings, warn(rule.name, fmt.Sprintf("%d of %d nodes: %s", n, all, rule.found), rule.cure))
		}
	}
	return findings
}

// olderThan is whether a version of Kubernetes is older; one that cannot be understood is not known to be.
func olderThan(is, than string) bool {
	v, err := version.ParseGeneric(is)
	return err == nil && v.LessThan(version.MustParseGeneric(than))
}

// serverFindings are about the API server.
func (c *cluster) serverFindings() (findings []Finding) {
	cure := "bring the API server to " + oldest + " or later"
	if olderThan(c.version, oldest) {
		findings = append(findings, fail("api-server", c.version+" is older than "+oldest+", which the chart needs", cure))
	}
	for _, kind := range c.unserved {
		findings = append(findings, fail("api-server", "serves no "+kind, cure))
	}
	if !c.knows("version") {
		return findings
	}
	return orOK(findings, "api-server", c.version)
}
