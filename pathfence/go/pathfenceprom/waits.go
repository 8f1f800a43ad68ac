package pathfenceprom

import (
	"github.com/prometheus/client_golang/prometheus"

	pathfence "temper.dev/temper/pathfence/go"
)

// Waits is how long requests wait for a permit: the histogram pathfence_wait_seconds, by class and by what came of them.
//
//	waits := pathfenceprom.NewWaits()
//	fence, err := pathfence.New(pathfence.Config{Workers: 64, OnDecision: waits.Observe})
//	prometheus.MustRegister(pathfenceprom.Collector(fence.State), waits)
type Waits struct{ *prometheus.HistogramVec }

// NewWaits has seen none yet.
func NewWaits() Waits {
	return Waits{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "pathfence_wait_seconds",
		Help:    "what requests wait for a worker until they are granted one, or refused",
		Buckets: append([]float64{.001, .0025}, prometheus.DefBuckets...),
	}, []string{"class", "outcome"})}
}

// Observe is for pathfence.Config.OnDecision.
func (w Waits) Observe(d pathfence.Decision) {
	w.WithLabelValues(d.Class, d.Outcome).Observe(d.Waited.Seconds())
}
