package advice

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"temper.dev/temper/internal/base/host"
)

// Write writes advice for people.
func (a *Advice) Write(w io.Writer) {
	for _, said := range a.verdict() {
		fmt.Fprintln(w, said)
	}
	fmt.Fprintln(w)
	writeSections(w, a.sections())
	for _, note := range a.Notes {
		fmt.Fprintf(w, "note: %s\n", host.Printable(note))
	}
}

// Write writes a plan for people.
func (p *Plan) Write(w io.Writer) { writeSections(w, p.sections(false)) }

func writeSections(w io.Writer, sections []section) {
	for _, s := range sections {
		if s.Title == "" {
			continue
		}
		fmt.Fprintf(w, "%s\n", s.Title)
		if s.Said != "" {
			fmt.Fprintf(w, "%s\n", s.Said)
		}
		if len(s.Rows) > 0 {
			out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fmt.Fprintf(out, "  %s\n", strings.ToUpper(strings.Join(s.Head, "\t")))
			for _, row := range s.Rows {
				fmt.Fprintf(out, "  %s\n", strings.Join(printable(row), "\t"))
			}
			out.Flush()
		}
		fmt.Fprintln(w)
	}
}

// printable are cells that others may have written, such as an agent's message, as a terminal may show them.
func printable(row []string) (safe []string) {
	for _, cell := range row {
		safe = append(safe, host.Printable(cell))
	}
	return safe
}

// verdict is the advice in a few sentences.
func (a *Advice) verdict() (said []string) {
	if p := a.Plan; p != nil {
		said = append(said, fmt.Sprintf("%d of %d nodes hold the pods%s; no plan goes below %d.", p.NodesAfter, p.NodesBefore, label(a.IfEnforced), p.AtLeast))
	}
	over := 0
	for _, n := range a.Nodes {
		if !n.Fits {
			over++
		}
	}
	if len(a.Nodes) > 0 {
		said = append(said, fmt.Sprintf("Nodes that break the sizing rule: %d of %d.", over, len(a.Nodes)))
	}
	var back *float64
	known := 0
	for _, n := range a.Namespaces {
		back = plus(back, n.GiveBackCPUs)
		known += n.PodsKnown
	}
	if back == nil {
		return append(said, fmt.Sprintf("What namespaces could give back is not known: no pod has %d hours of data.", a.EnoughHours))
	}
	could := fmt.Sprintf("Namespaces could give back %s CPUs", number(*back))
	if *back < 0 {
		could = fmt.Sprintf("Namespaces request %s CPUs too little", number(-*back))
	}
	return append(said, fmt.Sprintf("%s, by what is known of %d of %d pods.", could, known, len(a.Pods)))
}

// section is a part of the advice in words and a table, for terminals and pages.
type section struct {
	ID, Title, Said string
	Head            []string
	Rows            [][]string
	Words           []int // columns of words, which a page may wrap
}

func (a *Advice) sections() []section {
	sections := []section{a.sizingSection(), a.namespaceSection()}
	if a.Plan != nil {
		sections = append(sections, a.Plan.sections(a.IfEnforced)...)
	}
	if len(a.Shapes) > 0 {
		sections = append(sections, a.shapeSection())
	}
	sections = append(sections, a.tierSection())
	return slices.DeleteFunc(sections, func(s section) bool { return s.Title == "" })
}

// sizingSection has the nodes that break the rule.
func (a *Advice) sizingSection() section {
	if len(a.Nodes) == 0 {
		return section{}
	}
	s := section{ID: "sizing", Title: "Sizing rule: critical pods fit in a node's physical cores but one",
		Head: []string{"node", "critical cpus", "room", "cores", "over by"}}
	assumed := 0
	for _, n := range a.Nodes {
		cores := fmt.Sprint(n.Cores)
		if n.CoresAssumed {
			assumed++
			cores += " (assumed)"
		}
		if !n.Fits {
			s.Rows = append(s.Rows, []string{n.Node, number(n.CriticalCPUs), number(n.RoomCPUs), cores, number(n.CriticalCPUs - n.RoomCPUs)})
		}
	}
	s.Said = fmt.Sprintf("%d of %d nodes keep it.", len(a.Nodes)-len(s.Rows), len(a.Nodes))
	if assumed > 0 {
		s.Said += fmt.Sprintf(" Of %d nodes the physical cores are assumed: half of the CPUs.", assumed)
	}
	return s
}

func (a *Advice) namespaceSection() section {
	s := section{ID: "namespaces", Title: "What namespaces could give back, in CPUs", Head: []string{"namespace", "pods", "requested", a.usedName(), "give back", "of pods"}, Words: []int{4}}
	largestFirst := slices.SortedStableFunc(slices.Values(a.Namespaces), func(x, y Namespace) int { return cmp.Compare(y.RequestedCPUs, x.RequestedCPUs) })
	for _, n := range largestFirst {
		back := n.Why
		if n.GiveBackCPUs != nil {
			back = number(*n.GiveBackCPUs)
		}
		if n.PodsTooLow > 0 {
			back += fmt.Sprintf(" (%d pods request too little)", n.PodsTooLow)
		}
		s.Rows = append(s.Rows, []string{n.Namespace, fmt.Sprint(n.Pods), number(n.RequestedCPUs), perhaps(n.UsedCPUs), back, fmt.Sprint(n.PodsKnown)})
	}
	return s
}

// usedName is what a column of use is called.
func (a *Advice) usedName() string {
	var p95, moment bool
	for _, p := range a.Pods {
		p95 = p95 || p.P95CPUs != nil
		moment = moment || p.P95CPUs == nil && p.MomentCPUs != nil
	}
	switch {
	case p95 && moment:
		return "used (p95 or now)"
	case p95:
		return "used (p95)"
	case moment:
		return "used now"
	}
	return "used"
}

// tierSection has a row for the pods of a workload that are in one tier for one reason.
func (a *Advice) tierSection() section {
	type row struct{ namespace, workload, tier, policy, rule, reason string }
	count := map[row]int{}
	for _, p := range a.Pods {
		count[row{p.namespace, p.Workload, p.Tier.String(), cmp.Or(p.Policy, "-"), cmp.Or(p.Rule, "-"), p.Reason}]++
	}
	rows := slices.SortedFunc(maps.Keys(count), func(x, y row) int {
		return cmp.Or(cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.workload, y.workload), cmp.Compare(x.tier, y.tier), cmp.Compare(x.reason, y.reason))
	})
	s := section{ID: "tiers", Title: "Pods and their tiers", Head: []string{"pods of", "pods", "tier", "policy", "rule", "because of"}, Words: []int{2, 3, 4, 5}}
	for _, r := range rows {
		s.Rows = append(s.Rows, []string{r.namespace + "/" + r.workload, fmt.Sprint(count[r]), r.tier, r.policy, r.rule, r.reason})
	}
	return s
}

func (p *Plan) sections(ifEnforced bool) []section {
	return []section{p.emptiedSection(ifEnforced), p.keptSection(ifEnforced)}
}

func (p *Plan) emptiedSection(ifEnforced bool) section {
	s := section{ID: "plan", Title: fmt.Sprintf("Fewest nodes that hold the pods%s: %d of %d", label(ifEnforced), p.NodesAfter, p.NodesBefore),
		Head: []string{"node that could go", "pods to move", "first to go"}, Words: []int{2}}
	s.Said = fmt.Sprintf("No plan goes below %d. %s CPUs would be free. kube-scheduler's plugins confirmed it with %d seeds.", p.AtLeast, number(p.SavedCPUs), len(p.Seeds))
	if !p.Complete {
		s.Said += " The search was ended by its time limit: a longer --for may find fewer."
	}
	if ifEnforced {
		s.Said += "\nNo node is enforced yet: this is what it would be if Temper were in force. Until then, no node may be emptied."
	}
	for _, e := range p.Emptied {
		first := "-"
		if len(e.Moves) > 0 {
			first = e.Moves[0].Pod
		}
		s.Rows = append(s.Rows, []string{e.Node, fmt.Sprint(len(e.Moves)), first})
	}
	return s
}

func label(ifEnforced bool) string {
	if ifEnforced {
		return ", if enforced"
	}
	return ""
}

// keptSection has a row for the nodes that one reason keeps.
func (p *Plan) keptSection(ifEnforced bool) section {
	byReason := map[string][]string{}
	for _, k := range p.Kept {
		for _, reason := range k.Reasons {
			byReason[reason] = append(byReason[reason], k.Node)
		}
	}
	if len(byReason) == 0 {
		return section{}
	}
	s := section{ID: "kept", Title: "What keeps the other nodes" + label(ifEnforced), Head: []string{"nodes", "kept by"}, Words: []int{0, 1}}
	for reason, nodes := range byReason {
		s.Rows = append(s.Rows, []string{some(nodes), reason})
	}
	slices.SortFunc(s.Rows, func(a, b []string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return s
}

// some are names, as many as can be read.
func some(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func (a *Advice) shapeSection() section {
	s := section{ID: "shapes", Title: "The shape of node that would fit",
		Said: "Arithmetic on requests, as if pods could be cut in pieces; what binds decides the number.",
		Head: []string{"cpus", "gib", "pods", "have", "need", "binds", "by cpu", "by memory", "by pods", "by critical"}, Words: []int{5}}
	for _, sh := range a.Shapes {
		need := fmt.Sprint(sh.Nodes)
		binds := sh.Binds
		if sh.Why != "" {
			need, binds = "-", sh.Binds+": "+sh.Why
		}
		s.Rows = append(s.Rows, []string{number(sh.CPUs), number(sh.MemoryGiB), fmt.Sprint(sh.Pods), fmt.Sprint(sh.Have), need, cmp.Or(binds, "-"),
			fmt.Sprint(sh.ByCPU), fmt.Sprint(sh.ByMemory), fmt.Sprint(sh.ByPods), fmt.Sprint(sh.ByCritical)})
	}
	return s
}

func number(v float64) string { return fmt.Sprintf("%.6g", round(v)) }

func perhaps(v *float64) string {
	if v == nil {
		return "-"
	}
	return number(*v)
}
