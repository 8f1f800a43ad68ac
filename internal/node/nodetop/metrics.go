package nodetop

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"temper.dev/temper/internal/base/tier"
)

// FromMetrics fills in what an agent's metrics say.
func (l *Look) FromMetrics(text []byte) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("what its agent serves is no metrics: %w", err)
	}
	if families["temper_enforced"] == nil {
		return fmt.Errorf("what its agent serves is not Temper's metrics")
	}
	l.Fill(families, metrics(families).pods())
	return nil
}

// Fill fills in a node's figures, of metrics by name, and its pods.
func (l *Look) Fill(families map[string]*dto.MetricFamily, pods []Pod) {
	m := metrics(families)
	l.Pods, l.Tiers = pods, nil
	for t := range tier.Tier(tier.Count) {
		l.Tiers = append(l.Tiers, m.tier(t.String(), l.Pods))
	}
	l.Overrun, l.LoanBack = m.times("temper_gap_overrun_seconds"), m.times("temper_loan_back_seconds")
}

type metrics map[string]*dto.MetricFamily

// pods are those that have figures.
func (m metrics) pods() []Pod {
	type key struct{ name, tier string }
	keyOf := func(series *dto.Metric) key {
		return key{label(series, "namespace") + "/" + label(series, "pod"), label(series, "tier")}
	}
	waiting := map[key]*Count{}
	for _, series := range m["temper_pod_waiting_seconds_total"].GetMetric() {
		waiting[keyOf(series)] = &Count{Total: series.GetCounter().GetValue()}
	}
	pods := []Pod{}
	for _, series := range m["temper_pod_cpu_seconds_total"].GetMetric() {
		k := keyOf(series)
		pods = append(pods, Pod{Name: k.name, Tier: k.tier, CPU: &Count{Total: series.GetCounter().GetValue()}, Waiting: waiting[k]})
	}
	slices.SortFunc(pods, func(a, b Pod) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Tier, b.Tier)) })
	return pods
}

// tier has no CPU time where neither a scheduler nor a pod has any: unknown is not nought.
func (m metrics) tier(name string, pods []Pod) Tier {
	t := Tier{Tier: name, Wait: m.times("temper_tier_wait_seconds", "tier", name)}
	for _, p := range pods {
		if p.Tier == name {
			t.Pods++
			if p.CPU != nil {
				t.CPU = t.CPU.plus(new(*p.CPU)) // a copy: the pod's has a rate of its own
			}
		}
	}
	if series := m.find("temper_tier_cpu_seconds_total", "tier", name); series != nil {
		t.CPU = &Count{Total: series.GetCounter().GetValue()}
	}
	return t
}

// times are a histogram's; nil: it is not served.
func (m metrics) times(name string, labels ...string) *Times {
	series := m.find(name, labels...)
	if series == nil {
		return nil
	}
	h := series.GetHistogram()
	t := &Times{Count: h.GetSampleCount()}
	for _, b := range h.GetBucket() {
		t.buckets = append(t.buckets, bucket{b.GetUpperBound(), b.GetCumulativeCount()})
	}
	t.measure(t.buckets)
	return t
}

// find is the series of a metric with this label, if one is asked for.
func (m metrics) find(name string, want ...string) *dto.Metric {
	for _, series := range m[name].GetMetric() {
		if len(want) == 0 || label(series, want[0]) == want[1] {
			return series
		}
	}
	return nil
}

func label(series *dto.Metric, name string) string {
	for _, l := range series.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// measure sets the percentiles to those of buckets.
func (t *Times) measure(buckets []bucket) {
	t.P50US, t.P99US = percentile(buckets, 50), percentile(buckets, 99)
}
