package preflight

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/explain"
)

// Write shows a report to a person: nodes, pods by namespace and tier, findings. With all it names each node and each pod.
func (r *Report) Write(w io.Writer, all bool) {
	r.writeNodes(w, all)
	r.writeTiers(w)
	if all {
		answers := make([]explain.Answer, len(r.Pods))
		for i, p := range r.Pods {
			answers[i] = p.Answer
		}
		explain.Write(w, answers)
		fmt.Fprintln(w)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%-7s %-14s %s\n", f.Level, f.Name, f.Found)
		if f.Cure != "" {
			fmt.Fprintf(w, "%-22s cure: %s\n", "", f.Cure)
		}
	}
	fmt.Fprintln(w)
	for _, e := range r.NotKnownFromHere {
		fmt.Fprintf(w, "Not known from here, %s: ask %s.\n", e.What, e.Ask)
	}
}

func (r *Report) writeNodes(w io.Writer, all bool) {
	if len(r.Nodes) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODES\tKERNEL\tARCH\tOS\tRUNTIME\tKUBELET\tAGENT\tBECAUSE")
	for _, g := range r.Nodes {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.Count, dash(g.Kernel), dash(g.Architecture), dash(g.OS), dash(g.Runtime), dash(g.Kubelet), g.agent(), g.Because)
	}
	_ = table.Flush()
	if all {
		for _, g := range r.Nodes {
			fmt.Fprintf(w, "%s %s: %s\n", dash(g.Kernel), dash(g.Architecture), strings.Join(g.Names, " "))
		}
	}
	fmt.Fprintln(w)
}

// agent is what an agent could have in force there, in a word.
func (k Kind) agent() string {
	switch {
	case !k.Agent:
		return "none"
	case k.Rung == "":
		return "unknown"
	}
	return k.Rung
}

func (r *Report) writeTiers(w io.Writer) {
	if len(r.Pods) == 0 {
		return
	}
	counts := map[string]*[tier.Count + 1]int{} // the last of pods without an agent
	for _, p := range r.Pods {
		if counts[p.Namespace] == nil {
			counts[p.Namespace] = &[tier.Count + 1]int{}
		}
		column := int(p.Tier)
		if p.InForce == noAgent {
			column = tier.Count
		}
		counts[p.Namespace][column]++
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "PODS OF")
	for _, t := range tier.All {
		fmt.Fprint(table, "\t", strings.ToUpper(t.String()))
	}
	fmt.Fprintln(table, "\tNO AGENT")
	for _, namespace := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprint(table, namespace)
		for _, n := range counts[namespace] {
			fmt.Fprint(table, "\t", n)
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
	fmt.Fprintln(w)
}

func dash(text string) string { return cmp.Or(text, "-") }
