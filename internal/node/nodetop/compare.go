package nodetop

// Compare fills in what has changed since the round before.
func Compare(before, now *Round) {
	if now.Error != "" {
		now.Nodes = before.Nodes
		return
	}
	was := map[string]*Look{}
	for i := range before.Nodes {
		was[before.Nodes[i].Node] = &before.Nodes[i]
	}
	for i := range now.Nodes {
		if b := was[now.Nodes[i].Node]; b != nil && b.Live == now.Nodes[i].Live {
			now.Nodes[i].since(b)
		}
	}
}

// since fills in what has changed since a look at the same node by the same way.
func (l *Look) since(before *Look) {
	seconds := l.Time.Sub(before.Time).Seconds()
	if seconds <= 0 { // the same report
		l.Tiers, l.Pods, l.Overrun, l.LoanBack = before.Tiers, before.Pods, before.Overrun, before.LoanBack
		return
	}
	tiers := map[string]Tier{}
	for _, t := range before.Tiers {
		tiers[t.Tier] = t
	}
	for _, t := range l.Tiers {
		b := tiers[t.Tier]
		t.CPU.since(b.CPU, seconds)
		t.Wait.since(b.Wait, seconds)
	}
	type key struct{ name, tier string }
	pods := map[key]Pod{}
	for _, p := range before.Pods {
		pods[key{p.Name, p.Tier}] = p
	}
	for _, p := range l.Pods {
		b := pods[key{p.Name, p.Tier}]
		p.CPU.since(b.CPU, seconds)
		p.Waiting.since(b.Waiting, seconds)
	}
	l.Overrun.since(before.Overrun, seconds)
	l.LoanBack.since(before.LoanBack, seconds)
}

// since sets the rate. A count that has shrunk began anew.
func (c *Count) since(before *Count, seconds float64) {
	if c == nil || before == nil {
		return
	}
	grown := c.Total - before.Total
	if grown < 0 {
		grown = c.Total
	}
	c.Rate = new(grown / seconds)
}

// since sets the rate, and the percentiles to those of what has happened since.
func (t *Times) since(before *Times, seconds float64) {
	if t == nil || before == nil || len(t.buckets) == 0 || len(t.buckets) != len(before.buckets) {
		return
	}
	grown := make([]bucket, len(t.buckets))
	for i, b := range t.buckets {
		if b.below < before.buckets[i].below { // it began anew
			grown = t.buckets
			break
		}
		grown[i] = bucket{b.edge, b.below - before.buckets[i].below}
	}
	t.Rate = new(float64(grown[len(grown)-1].below) / seconds)
	t.measure(grown)
}
