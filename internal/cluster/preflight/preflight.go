// What is in the way of Temper in a cluster.
//
// Problem: who installs Temper learns afterwards which nodes fall back, what refuses the agent's pods, and which pods of
// his are in background.
//
// Method: one read of the cluster (look.go), then rules that look at that alone: nodes, the namespace of the agents, and the
// tiers of the pods that run. Temper's own objects are those that the chart makes. Quotas, limits and webhooks are matched
// by the API server's own code, tiers by the agent's.
//
// Limits: what neither a Node nor another object says is told as not known. Nothing is written, and no pod is tried out.

// Package preflight says what would be in the way of Temper in a cluster, before it is installed.
package preflight

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/rest"

	"temper.dev/temper/internal/base/exit"
)

// Namespace is where the agents go unless somebody says otherwise.
const Namespace = "temper-system"

// Level is how a look came out.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warn    Level = "warn"    // Temper can be installed; somebody should know this first
	Fail    Level = "fail"    // it would be refused, or not work at all
	Unknown Level = "unknown" // the user may not look, or got no answer
)

// Finding is what one look found.
type Finding struct {
	Name  string `json:"name"`
	Level Level  `json:"level"`
	Found string `json:"found"`
	Cure  string `json:"cure,omitempty"` // for all but ok
}

// Verdict is what all findings come to.
type Verdict string

// The verdicts.
const (
	Ready    Verdict = "ready"   // nothing fails, and all was looked at
	Blocked  Verdict = "blocked" // something fails
	NotKnown Verdict = "unknown" // nothing is seen to fail, but not all could be looked at
)

// Report is what a look at a cluster found.
type Report struct {
	Verdict   Verdict   `json:"verdict"`
	Namespace string    `json:"namespace"` // that the agents would go to
	Nodes     []Group   `json:"nodes"`
	Findings  []Finding `json:"findings"`
	Pods      []Pod     `json:"pods"`
	// What objects of a cluster cannot say, and what says it.
	NotKnownFromHere []Elsewhere `json:"not_known_from_here"`
}

// Elsewhere is what something else than the API server knows.
type Elsewhere struct {
	What string `json:"what"`
	Ask  string `json:"ask"`
}

var elsewhere = []Elsewhere{
	{"of a node: sched_ext in its kernel's configuration, the kernel's type data (BTF), lockdown, cgroup v2, AppArmor and SELinux",
		"'temper doctor' on the node, or its agent by 'kubectl temper status NODE' once it is installed"},
	{"of the API server: its admission configuration, such as the Pod Security level of namespaces without a label",
		"who runs the control plane"},
}

// Run looks at a cluster. It fails where that does not answer; what the user may not read is a finding.
func Run(ctx context.Context, config *rest.Config, namespace string) (*Report, error) {
	temper, err := shipped(namespace)
	if err != nil {
		return nil, err
	}
	c, err := look(ctx, config, temper)
	if err != nil {
		return nil, err
	}
	return c.report(), nil
}

func (c *cluster) report() *Report {
	groups := c.groups()
	r := &Report{Namespace: c.temper.namespace, Nodes: groups, Pods: c.tiers(groups), NotKnownFromHere: elsewhere}
	r.Findings = slices.Concat(c.hiddenFindings(), c.serverFindings(), c.nodeFindings(groups), c.objectFindings(), c.namespaceFindings(groups),
		c.webhookFindings(), c.neighbourFindings(), c.surprises(r.Pods))
	r.Verdict = verdict(r.Findings)
	return r
}

func verdict(findings []Finding) Verdict {
	has := func(l Level) bool { return slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == l }) }
	switch {
	case has(Fail):
		return Blocked
	case has(Unknown):
		return NotKnown
	}
	return Ready
}

// Err is the failure that a verdict is; nil where Temper can be installed.
func (v Verdict) Err() error {
	switch v {
	case Blocked:
		return exit.New(exit.Failed, "cure what fails above, and ask again", "something is in the way of Temper")
	case NotKnown:
		return exit.New(exit.Failed, "ask as somebody who may read it", "not all could be looked at")
	}
	return nil
}

func ok(name, found string) []Finding { return []Finding{{name, OK, found, ""}} }

func warn(name, found, cure string) Finding { return Finding{name, Warn, found, cure} }

func fail(name, found, cure string) Finding { return Finding{name, Fail, found, cure} }

// orOK is the findings, or where there are none that there are none.
func orOK(findings []Finding, name, found string) []Finding {
	if len(findings) == 0 {
		return ok(name, found)
	}
	return findings
}

var errNoAgent = errors.New("the chart's manifests have no DaemonSet")
