// Package pathfenceprom gives a fence's figures to Prometheus:
//
//	prometheus.MustRegister(pathfenceprom.Collector(fence.State))
package pathfenceprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pathfence "temper.dev/temper/pathfence/go"
)

type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(pathfence.ClassState) float64
}

func gauge(name, help string, value func(pathfence.ClassState) float64) metric {
	return metric{prometheus.NewDesc("pathfence_"+name, help, []string{"class"}, nil), prometheus.GaugeValue, value}
}

func counter(name, help string, value func(pathfence.ClassState) float64) metric {
	m := gauge(name, help, value)
	m.kind = prometheus.CounterValue
	return m
}

// metrics are those of ../../spec/state.md, the same in all languages.
var metrics = []metric{
	gauge("limit", "the most that may be in flight", func(c pathfence.ClassState) float64 { return float64(c.Limit) }),
	gauge("reserve", "workers that it has a right to", func(c pathfence.ClassState) float64 { return float64(c.Reserve) }),
	gauge("in_flight", "workers that it has", func(c pathfence.ClassState) float64 { return float64(c.InFlight) }),
	gauge("queued", "requests that wait", func(c pathfence.ClassState) float64 { return float64(c.Queued) }),
	gauge("lent", "workers beyond its reserve", func(c pathfence.ClassState) float64 { return float64(c.Lent) }),
	gauge("knee", "smallest concurrency on the plateau of goodput", func(c pathfence.ClassState) float64 { return float64(c.Knee) }),
	gauge("hold", "seconds that a request keeps its worker", func(c pathfence.ClassState) float64 { return time.Duration(c.Hold).Seconds() }),
	counter("granted_total", "requests that were given a worker", func(c pathfence.ClassState) float64 { return float64(c.Granted) }),
	counter("shed_total", "requests that were refused", func(c pathfence.ClassState) float64 { return float64(c.Shed) }),
	counter("missed_total", "requests that ended after their deadline", func(c pathfence.ClassState) float64 { return float64(c.Missed) }),
	counter("failed_total", "requests that failed", func(c pathfence.ClassState) float64 { return float64(c.Failed) }),
}

type collector struct{ look func() pathfence.State }

// Collector looks at a fence's state at each scrape. More than one fence in a process are told apart by labels of one's own:
// prometheus.WrapRegistererWith.
func Collector(look func() pathfence.State) prometheus.Collector { return collector{look} }

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, class := range c.look().Classes {
		for _, m := range metrics {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(class), class.Name)
		}
	}
}
