package nodetop

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"temper.dev/temper/internal/base/host"
)

// Orders are what tables may be sorted by.
var Orders = []string{"cpu", "wait", "name"}

// Table is how rounds are shown.
type Table struct {
	Order  string // one of Orders
	Tiers  bool   // show each tier: for one node
	Own    bool   // a node's own look at itself: what has a tier is a cgroup
	Colour bool
}

const (
	bold   = "1"
	red    = "31"
	yellow = "33"
)

// Write shows a round: nodes, tiers if they are wanted, pods.
func (t Table) Write(w io.Writer, r *Round) {
	if r.Error != "" {
		t.line(w, red, t.asked()+" cannot be asked, and what follows is older: "+r.Error)
	}
	t.line(w, bold, t.summary(r))
	fmt.Fprintln(w)
	t.nodes(w, r)
	if t.Tiers {
		for _, n := range r.Nodes {
			fmt.Fprintln(w)
			t.tiers(w, n)
		}
	}
	fmt.Fprintln(w)
	t.pods(w, r)
	t.reasons(w, r)
	for _, n := range r.Nodes {
		if n.Why != "" {
			t.line(w, yellow, "not enforced: "+n.Why)
		}
		for _, p := range n.Problems {
			t.line(w, yellow, "problem: "+p)
		}
	}
}

func (t Table) summary(r *Round) string {
	enforced, pods := 0, 0
	for _, n := range r.Nodes {
		pods += len(n.Pods)
		if n.Enforced == "yes" {
			enforced++
		}
	}
	if t.Own {
		return fmt.Sprintf("%s · %d cgroups", r.Time.Format(time.TimeOnly), pods)
	}
	return fmt.Sprintf("%s · %d of %d nodes enforced · %d pods", r.Time.Format(time.TimeOnly), enforced, len(r.Nodes), pods)
}

// asked is who says what is shown.
func (t Table) asked() string {
	if t.Own {
		return "this node"
	}
	return "the API server"
}

// what has a tier.
func (t Table) what() string {
	if t.Own {
		return "CGROUP"
	}
	return "POD"
}

func (t Table) nodes(w io.Writer, r *Round) {
	rows := rows{head: "NODE\tRUNG\tENFORCED\tSYSTEM\tCRITICAL\tSTANDARD\tBACKGROUND\tWAIT P99\tGAPS/S\tOVERRUN P99\tLOANS/S\tBACK P99\tFIGURES"}
	nodes := slices.Clone(r.Nodes)
	slices.SortStableFunc(nodes, func(a, b Look) int {
		switch t.Order {
		case "cpu":
			return compare(a.cpu(), b.cpu())
		case "wait":
			return cmp.Compare(b.tier("critical").Wait.p99(), a.tier("critical").Wait.p99())
		}
		return 0 // by name
	})
	for _, n := range nodes {
		paint, figures := "", "live"
		if n.Enforced != "yes" {
			paint = red
		}
		if !n.Live {
			figures = n.age(r.Time)
			paint = cmp.Or(paint, yellow)
		}
		cells := []string{n.Node, cmp.Or(n.Rung, "-"), n.Enforced}
		for _, name := range []string{"system", "critical", "standard", "background"} {
			cells = append(cells, n.tier(name).CPU.cpus())
		}
		cells = append(cells, host.Below(n.tier("critical").Wait.p99()), n.Overrun.often(), host.Below(n.Overrun.p99()), n.LoanBack.often(), host.Below(n.LoanBack.p99()), figures)
		rows.add(paint, cells...)
	}
	t.write(w, rows)
}

func (t Table) tiers(w io.Writer, n Look) {
	rows := rows{head: "TIER\t" + t.what() + "S\tCPU\tWAITS/S\tWAIT P50\tP99"}
	for _, tier := range n.Tiers {
		var p50 uint64
		if tier.Wait != nil {
			p50 = tier.Wait.P50US
		}
		rows.add("", tier.Tier, fmt.Sprint(tier.Pods), tier.CPU.cpus(), tier.Wait.often(), host.Below(p50), host.Below(tier.Wait.p99()))
	}
	t.write(w, rows)
}

func (t Table) pods(w io.Writer, r *Round) {
	type row struct {
		node string
		Pod
	}
	var pods []row
	for _, n := range r.Nodes {
		for _, p := range n.Pods {
			pods = append(pods, row{n.Node, p})
		}
	}
	slices.SortStableFunc(pods, func(a, b row) int {
		order := 0
		switch t.Order {
		case "cpu":
			order = compare(a.CPU, b.CPU)
		case "wait":
			order = compare(a.Waiting, b.Waiting)
		}
		return cmp.Or(order, cmp.Compare(a.Name, b.Name))
	})
	rows := rows{head: t.what() + "\tTIER\tCPU\tWAITING"}
	if !t.Own {
		rows.head += "\tNODE"
	}
	for _, p := range pods {
		cells := []string{p.Name, p.Tier, p.CPU.cpus(), p.Waiting.share()}
		if !t.Own {
			cells = append(cells, p.node)
		}
		rows.add("", cells...)
	}
	t.write(w, rows)
}

// reasons says why figures are not live, each reason once.
func (t Table) reasons(w io.Writer, r *Round) {
	names := map[string][]string{}
	var order []string
	for _, n := range r.Nodes {
		if n.WhyNot != "" {
			if names[n.WhyNot] == nil {
				order = append(order, n.WhyNot)
			}
			names[n.WhyNot] = append(names[n.WhyNot], n.Node)
		}
	}
	if len(order) > 0 {
		fmt.Fprintln(w)
	}
	for _, why := range order {
		fmt.Fprintf(w, "figures of %s are of the last report: %s\n", strings.Join(names[why], ", "), why)
	}
}

// age is that of a report.
func (l Look) age(now time.Time) string {
	if l.Time.IsZero() {
		return "never"
	}
	return host.Ago(now.Sub(l.Time))
}

func (l Look) tier(name string) Tier {
	for _, t := range l.Tiers {
		if t.Tier == name {
			return t
		}
	}
	return Tier{}
}

// cpu is what all tiers use.
func (l Look) cpu() *Count {
	var sum *Count
	for _, t := range l.Tiers {
		sum = sum.plus(t.CPU)
	}
	return sum
}

func (c *Count) plus(other *Count) *Count {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	sum := &Count{Total: c.Total + other.Total}
	if c.Rate != nil && other.Rate != nil {
		sum.Rate = new(*c.Rate + *other.Rate)
	}
	return sum
}

// compare puts the greater rate first, then what has none yet, the greater first, and then what nobody counts.
func compare(a, b *Count) int {
	known := func(c *Count) (rate, total float64) {
		switch {
		case c == nil:
			return -1, -1
		case c.Rate == nil:
			return -1, c.Total
		}
		return *c.Rate, 0
	}
	aRate, aTotal := known(a)
	bRate, bTotal := known(b)
	return cmp.Or(cmp.Compare(bRate, aRate), cmp.Compare(bTotal, aTotal))
}

// cpus is how many CPUs are used; seconds, until there is a second look.
func (c *Count) cpus() string {
	switch {
	case c == nil:
		return "-"
	case c.Rate == nil:
		return fmt.Sprintf("%.1f s", c.Total)
	}
	return fmt.Sprintf("%.2f", *c.Rate)
}

// share is of the time.
func (c *Count) share() string {
	if c == nil || c.Rate == nil {
		return c.cpus()
	}
	return fmt.Sprintf("%.1f%%", 100**c.Rate)
}

// often is how often it happened each second.
func (t *Times) often() string {
	if t == nil || t.Rate == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *t.Rate)
}

func (t *Times) p99() uint64 {
	if t == nil {
		return 0
	}
	return t.P99US
}

// rows are a table's. Lines are painted once they are aligned: what paints has a width, too.
type rows struct {
	head   string
	lines  []string
	paints []string
}

func (r *rows) add(paint string, cells ...string) {
	r.lines, r.paints = append(r.lines, strings.Join(cells, "\t")), append(r.paints, paint)
}

func (t Table) write(w io.Writer, r rows) {
	var text bytes.Buffer
	aligned := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(aligned, r.head)
	for _, line := range r.lines {
		fmt.Fprintln(aligned, line)
	}
	aligned.Flush()
	paints := append([]string{bold}, r.paints...)
	for line := range strings.Lines(text.String()) {
		t.line(w, paints[0], strings.TrimSuffix(line, "\n"))
		paints = paints[1:]
	}
}

func (t Table) line(w io.Writer, paint, text string) {
	if t.Colour && paint != "" {
		text = "\x1b[" + paint + "m" + text + "\x1b[0m"
	}
	fmt.Fprintln(w, text)
}
