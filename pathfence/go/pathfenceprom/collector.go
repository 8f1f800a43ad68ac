// Package pathfenceprom gives a fence's figures to Prometheus:
//
//	prometheus.MustRegister(pathfenceprom.Collector(fence.State))
package pathfenceprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pathfence "temper.dev/temper/pathfence/go"
)

// metric is one of a whole, which is a fence or a class.
type metric[Whole any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(Whole) float64
}

func gauge(name, help string, value func(pathfence.ClassState) float64) metric[pathfence.ClassState] {
	return metric[pathfence.ClassState]{describe(name, help, "class"), prometheus.GaugeValue, value}
}

func counter(name, help string, value func(pathfence.ClassState) float64) metric[pathfence.ClassState] {
	m := gauge(name, help, value)
	m.kind = prometheus.CounterValue
	return m
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pathfence_"+name, help, labels, nil)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Those of ../../spec/state.md, the same in all languages.
var ofFence = []metric[pathfence.State]{
	{describe("workers", "the pool"), prometheus.GaugeValue, func(s pathfence.State) float64 { return float64(s.Workers) }},
	{describe("off", "1 if the fence is switched off: the plain pool"), prometheus.GaugeValue, func(s pathfence.State) float64 { return truth(s.Off) }},
	{describe("config_error", "1 if the watched configuration is not in force"), prometheus.GaugeValue, func(s pathfence.State) float64 { return truth(s.WatchError != nil) }},
}

var ofClass = []metric[pathfence.ClassState]{
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
	for _, m := range ofFence {
		out <- m.desc
	}
	for _, m := range ofClass {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	state := c.look()
	for _, m := range ofFence {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(state))
	}
	for _, class := range state.Classes {
		for _, m := range ofClass {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(class), class.Name)
		}
	}
}
