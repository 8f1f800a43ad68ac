// Package fleet shows what Temper does on a cluster's nodes, as their agents say it.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/host"
)

// staleAfter is the age of a report from which on its agent is taken for gone: it reports once a minute.
const staleAfter = 3 * time.Minute

// clockMayDiffer is by how much the API server's clock and a node's may differ before that is told.
const clockMayDiffer = 30 * time.Second

// Agents selects the agents' pods, by the label that the chart gives them.
var Agents = client.MatchingLabels{"app.kubernetes.io/name": "temper-agent"}

// Node is one node's report.
type Node struct {
	Name  string    `json:"name"`
	Stale bool      `json:"stale"`           // the agent is gone, or cannot reach the API server
	Agent string    `json:"agent,omitempty"` // what is wrong with it, of what All knows
	Heard time.Time `json:"heard,omitzero"`  // when the API server took the report, by its clock
	v1alpha1.TemperNodeStatus
}

// Nodes are the reports of the nodes of these names, of all where none is given, in the order of their names. Who has not
// reported is left out.
func Nodes(ctx context.Context, cluster client.Reader, names []string, now time.Time) ([]Node, error) {
	var list v1alpha1.TemperNodeList
	if len(names) == 0 {
		if err := cluster.List(ctx, &list); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		var one v1alpha1.TemperNode
		if err := cluster.Get(ctx, client.ObjectKey{Name: name}, &one); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, one)
	}
	nodes := []Node{}
	for _, item := range list.Items {
		nodes = append(nodes, Node{Name: item.Name, Stale: IsStale(&item, now), Heard: heard(&item), TemperNodeStatus: item.Status})
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes, nil
}

// IsStale is whether a report is so old that nothing in it counts.
func IsStale(report *v1alpha1.TemperNode, now time.Time) bool {
	return now.Sub(heard(report)) > staleAfter
}

// heard is when the API server took a node's last report, by its own clock: a node's may be off. Where somebody has removed
// the managed fields that say it, it is when the agent says.
func heard(report *v1alpha1.TemperNode) (last time.Time) {
	for _, fields := range report.ManagedFields {
		if fields.Subresource == "status" && fields.Time != nil && fields.Time.After(last) {
			last = fields.Time.Time
		}
	}
	if last.IsZero() {
		return report.Status.Reported.Time
	}
	return last
}

// Write shows one line a node.
func Write(w io.Writer, nodes []Node, now time.Time) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "NODE\tRUNG\tENFORCED\tPOLICY\tCRITICAL\tBACKGROUND\tPROBLEMS\tREPORTED")
	for _, n := range nodes {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", n.Name, cmp.Or(n.Rung, "-"), n.Enforced(), cmp.Or(n.Policy, "-"),
			len(n.tier("critical").Pods), len(n.tier("background").Pods), len(n.Problems), n.reported(now))
	}
	out.Flush()
}

// WriteOne shows all of one node.
func WriteOne(w io.Writer, n Node, now time.Time) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "node\t%s\nkernel\t%s\nrung\t%s\npolicy\t%s\nreported\t%s\n", n.Name, n.KernelVersion, n.Rung, cmp.Or(n.Policy, "none"), n.reported(now))
	switch r := n.Reservation; {
	case r == nil:
	case r.IsZero():
		fmt.Fprint(out, "reservation\tof no CPU: critical pods request none, and share with standard by weight\n")
	default:
		fmt.Fprintf(out, "reservation\tcritical comes first up to %g CPUs\n", r.AsApproximateFloat64())
	}
	fmt.Fprint(out, "\nCONDITION\tSTATUS\tREASON\tSINCE\tMESSAGE\n")
	for _, c := range n.Conditions {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, duration.HumanDuration(max(0, now.Sub(c.LastTransitionTime.Time))), c.Message)
	}
	fmt.Fprint(out, "\nTIER\tCPU S\tWAIT P50\tP99\tMAX\tPODS\n")
	for _, t := range n.Tiers {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Tier, cmp.Or(t.CPUSeconds, "-"), below(t.WaitP50Microseconds), below(t.WaitP99Microseconds),
			exactly(t.WaitMaxMicroseconds), cmp.Or(strings.Join(t.Pods, " "), "-"))
	}
	if g := n.Gap; g != nil {
		fmt.Fprint(out, "\nBACKGROUND RAN ON\tP50\tP99\n")
		fmt.Fprintf(out, "while a higher tier waited\t%s\t%s\n", below(g.OverrunP50Microseconds), below(g.OverrunP99Microseconds))
		fmt.Fprintf(out, "in the fence, after a loan\t%s\t%s\n", below(g.LoanBackP50Microseconds), below(g.LoanBackP99Microseconds))
	}
	out.Flush()
	for _, p := range n.Problems {
		fmt.Fprintf(w, "\nproblem: %s\n", host.Printable(p))
	}
}

// Enforced is whether its tiers are: "yes", else why not.
func (n Node) Enforced() string {
	c := meta.FindStatusCondition(n.Conditions, v1alpha1.ConditionEnforced)
	switch {
	case c == nil:
		return "unknown"
	case n.Stale:
		return "unknown (was " + strings.ToLower(string(c.Status)) + ")"
	case c.Status == metav1.ConditionTrue:
		return "yes"
	}
	return "no (" + c.Reason + ")"
}

// InForce is whether a pod, namespace/name, is in this tier and the tiers are enforced: "yes", else why not.
func (n Node) InForce(pod string, t v1alpha1.Tier) string {
	enforced := n.Enforced()
	if enforced != "yes" || slices.Contains(n.tier(t).Pods, pod) {
		return enforced
	}
	for _, other := range n.Tiers {
		if slices.Contains(other.Pods, pod) {
			return fmt.Sprintf("no (it is %s there)", other.Tier)
		}
	}
	return "no (its node does not report it)"
}

func (n Node) tier(name v1alpha1.Tier) v1alpha1.TierStatus {
	for _, t := range n.Tiers {
		if t.Tier == name {
			return t
		}
	}
	return v1alpha1.TierStatus{}
}

func (n Node) reported(now time.Time) string {
	text := "never"
	if !n.Reported.IsZero() {
		at := n.Heard
		if at.IsZero() {
			at = n.Reported.Time
		}
		text = host.Ago(now.Sub(at)) + clock(n.Reported.Sub(at))
	}
	switch {
	case n.Agent != "":
		text += ": " + n.Agent
	case n.Stale && !n.Reported.IsZero():
		text += ": its agent is gone, or cannot reach the API server"
	}
	return text
}

// clock says what a node's clock is off by, if that is more than a report may take on its way.
func clock(ahead time.Duration) string {
	switch {
	case ahead > clockMayDiffer:
		return ", its clock is " + duration.HumanDuration(ahead) + " ahead"
	case ahead < -clockMayDiffer:
		return ", its clock is " + duration.HumanDuration(-ahead) + " behind"
	}
	return ""
}

// below is the upper edge of a bucket.
func below(us int64) string { return host.Below(uint64(us)) }

// exactly is a duration that is known; 0: none was seen.
func exactly(us int64) string {
	if us == 0 {
		return "-"
	}
	return host.Micros(uint64(us))
}
