// Package metric says what a metric of Temper's programs is: to Prometheus, and to the documentation.
package metric

import "github.com/prometheus/client_golang/prometheus"

// Metric is what one metric is.
type Metric struct {
	Name, Help string
	Labels     []string
	Kind       string // counter, gauge or histogram
	Desc       *prometheus.Desc
}

// New is the metric temper_NAME.
func New(kind, name, help string, labels ...string) *Metric {
	m := &Metric{Name: "temper_" + name, Help: help, Labels: labels, Kind: kind}
	m.Desc = prometheus.NewDesc(m.Name, help, labels, nil)
	return m
}

// Value is one of its values, if it is a counter or a gauge.
func (m *Metric) Value(value float64, labels ...string) prometheus.Metric {
	kind := prometheus.GaugeValue
	if m.Kind == "counter" {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(m.Desc, kind, value, labels...)
}
