// Package nodemetrics gives Prometheus what the agent of a cluster's node knows, beside the figures of any node.
package nodemetrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/metric"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/nodepods"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/status"
)

// mostPods bounds how many pods have series of their own: more than any kubelet is made for.
const mostPods = 500

var (
	labels = []string{"namespace", "pod", "tier"}

	condition = metric.New("gauge", "condition", "1 where the TemperNode's condition is True, 0 where it is False. One that is Unknown has no series.", "condition", "reason")
	used      = metric.New("counter", "pod_cpu_seconds_total", "CPU time that the pod used, as the kernel counts it for the pod's cgroup.", labels...)
	waited    = metric.New("counter", "pod_waiting_seconds_total", "Time in which some task of the pod waited for a CPU (the kernel's PSI).", labels...)
	omitted   = metric.New("gauge", "pods_omitted", "Pods beyond the 500th by name, which have no series.")
)

// Metrics lists all, in the order of the documentation.
func Metrics() []*metric.Metric { return []*metric.Metric{condition, used, waited, omitted} }

// Collector looks at the agent's state, and at the pods' cgroups, at each scrape.
type Collector struct {
	root  host.Root
	state func() (*agent.State, error)
	look  func() (*status.Status, error)
}

// Describe implements prometheus.Collector.
func (Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range Metrics() {
		out <- m.Desc
	}
}

// pod is one in a tier. One that changes its tier goes on as another.
type pod struct {
	name string // namespace/name
	tier tier.Tier
}

// figures are what its cgroups have come to, in microseconds; nil: not to be had.
type figures struct{ used, waited *uint64 }

// values are those of a condition that is known.
var values = map[metav1.ConditionStatus]float64{metav1.ConditionTrue: 1, metav1.ConditionFalse: 0}

// Collect implements prometheus.Collector.
func (c Collector) Collect(out chan<- prometheus.Metric) {
	state, err := c.state()
	if err != nil {
		out <- prometheus.NewInvalidMetric(condition.Desc, fmt.Errorf("what the agent does is not known: %w", err))
		return
	}
	if seen, err := c.look(); err != nil {
		out <- prometheus.NewInvalidMetric(condition.Desc, err)
	} else {
		for _, is := range nodepods.Conditions(c.root, *state, seen) {
			if value, known := values[is.Status]; known {
				out <- condition.Value(value, is.Type, is.Reason)
			}
		}
	}
	pods := map[pod]figures{}
	for _, m := range state.Members {
		if m.Pod == "" || !m.Present {
			continue
		}
		key := pod{m.Pod, m.Tier}
		sum := pods[key]
		sum.add(c.root, m.Cgroup)
		pods[key] = sum
	}
	order := slices.SortedFunc(maps.Keys(pods), func(a, b pod) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.tier, b.tier)) })
	shown := order[:min(len(order), mostPods)]
	for _, p := range shown {
		namespace, name, _ := strings.Cut(p.name, "/")
		emit := func(m *metric.Metric, microseconds *uint64) {
			if microseconds != nil {
				out <- m.Value(float64(*microseconds)/1e6, namespace, name, p.tier.String())
			}
		}
		emit(used, pods[p].used)
		emit(waited, pods[p].waited)
	}
	out <- omitted.Value(float64(len(order) - len(shown)))
}

// add adds a cgroup's figures. One that has gone since has none, and neither has one whose kernel does not count waits.
func (f *figures) add(root host.Root, cg string) {
	f.used = plus(f.used, cgroup.Used(root, cg))
	f.waited = plus(f.waited, cgroup.Waited(root, cg))
}

func plus(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// Gatherer gathers the figures of the node at root, and what its agent says: by one look each time.
func Gatherer(root host.Root, said func() (*agent.State, error)) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		look := sync.OnceValues(func() (*status.Status, error) { return status.Beside(root, said) })
		own := prometheus.NewRegistry()
		own.MustRegister(Collector{root, said, look})
		return prometheus.Gatherers{status.RegistryOf(look), own}.Gather()
	})
}

// Serve answers scrapes of /metrics at address until ctx ends.
func Serve(ctx context.Context, address string, root host.Root, said func() (*agent.State, error)) error {
	listener, err := status.Listen("--metrics", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(Gatherer(root, said), promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() { _ = server.Serve(listener) }() // it ends with ctx, and so does the agent
	return nil
}
