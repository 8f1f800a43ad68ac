package controller

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/metric"
)

var (
	guardedMetric = metric.New("gauge", "overcommit_guarded", "1 while new pods keep their CPU requests, 0 while these are lowered; the label says why.", "reason")
	readyMetric   = metric.New("gauge", "overcommit_ready", "1 while the admission policies do what the CapacityPolicy asks for, else 0; the label says why.", "reason")
	factorMetric  = metric.New("gauge", "overcommit_factor", "Share of their CPU requests that new pods are left with; 1 while they keep them.")
	nodesMetric   = metric.New("gauge", "overcommit_nodes", "Nodes that the CapacityPolicy selects, without cordoned ones.")
	fitMetric     = metric.New("gauge", "overcommit_fit_nodes", "Nodes of those that the guard finds fit.")
)

// Metrics lists all, in the order of the documentation. Which replica works has them; the others have none.
func Metrics() []*metric.Metric {
	return []*metric.Metric{guardedMetric, readyMetric, factorMetric, nodesMetric, fitMetric}
}

// figures are what the CapacityPolicy's status said last, for Prometheus.
type figures struct {
	mu   sync.Mutex
	last *v1alpha1.CapacityPolicyStatus // nil: there is no CapacityPolicy, or another replica works
}

func (f *figures) set(last *v1alpha1.CapacityPolicyStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = last
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, m := range Metrics() {
		out <- m.Desc
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	if last == nil {
		return
	}
	for condition, m := range map[string]*metric.Metric{v1alpha1.ConditionGuarded: guardedMetric, v1alpha1.ConditionReady: readyMetric} {
		if c := meta.FindStatusCondition(last.Conditions, condition); c != nil {
			value := 0.0
			if c.Status == metav1.ConditionTrue {
				value = 1
			}
			out <- m.Value(value, c.Reason)
		}
	}
	for m, value := range map[*metric.Metric]float64{factorMetric: float64(last.FactorPercent) / 100, nodesMetric: float64(last.Nodes), fitMetric: float64(last.FitNodes)} {
		out <- m.Value(value)
	}
}
