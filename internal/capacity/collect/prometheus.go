package collect

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/api/resource"

	"temper.dev/temper/internal/capacity/snapshot"
)

// The CPU time of a namespace's pods, as rates between two samples that follow each other. No average over a whole minute
// is higher than the highest of those within it, as long as samples are a minute apart or less. Of containers only: the
// pods' own cgroups would count twice.
const rates = `sum by (pod) (irate(container_cpu_usage_seconds_total{namespace=%q,container!="",container!="POD"}[2m]))`

// What is asked of each day, so that no answer is larger than a few numbers a pod. The highest of the days' p95 is at least
// the p95 of all days together.
const (
	highest = `max_over_time((%s)[1d:15s])`
	p95     = `quantile_over_time(0.95, (%s)[1d:1m])`
	minutes = `count_over_time((%s)[1d:1m])`
)

const day = 24 * time.Hour

// AddPrometheus adds what Prometheus has measured of the snapshot's pods in the days before now. Asked is called after each
// namespace with how many of them all are done.
func (r *Result) AddPrometheus(ctx context.Context, url string, window time.Duration, now time.Time, asked func(done, of int)) error {
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	server := prometheusv1.NewAPI(client)
	days := prometheusv1.Range{Start: now.Add(day - window.Truncate(day)), End: now, Step: day}
	if r.Use == nil {
		r.Use = map[string]snapshot.Use{}
	}
	namespaces := r.podNamespaces()
	for i, namespace := range namespaces {
		use, err := useOf(ctx, server, namespace, days)
		if err != nil {
			return fmt.Errorf("Prometheus at %s, namespace %s: %w", client.URL("", nil).Redacted(), namespace, err)
		}
		for _, pod := range r.Pods {
			if u, ok := use[pod.Name]; ok && pod.Namespace == namespace {
				r.Use[snapshot.Key(pod)] = u
			}
		}
		asked(i+1, len(namespaces))
	}
	if len(r.Use) == 0 {
		r.note("Prometheus has no container_cpu_usage_seconds_total of these pods: does it scrape the kubelets' /metrics/cadvisor?")
	}
	return nil
}

func (r *Result) podNamespaces() (names []string) {
	for _, pod := range r.Pods {
		names = append(names, pod.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// useOf is the use of a namespace's pods, by their names.
func useOf(ctx context.Context, server prometheusv1.API, namespace string, days prometheusv1.Range) (map[string]snapshot.Use, error) {
	use := map[string]snapshot.Use{}
	for _, q := range []struct {
		query string
		note  func(u *snapshot.Use, value float64)
	}{
		{highest, func(u *snapshot.Use, v float64) { u.CPU = larger(u.CPU, v) }},
		{p95, func(u *snapshot.Use, v float64) { u.P95 = larger(u.P95, v) }},
		{minutes, func(u *snapshot.Use, v float64) { u.Hours += v / 60 }},
	} {
		answer, _, _, err := server.QueryRange(ctx, fmt.Sprintf(q.query, fmt.Sprintf(rates, namespace)), days)
		if err != nil {
			return nil, err
		}
		matrix, ok := answer.(model.Matrix)
		if !ok {
			return nil, fmt.Errorf("it answers a range query with a %s", answer.Type())
		}
		for _, series := range matrix {
			pod := string(series.Metric["pod"])
			u := use[pod]
			for _, sample := range series.Values {
				q.note(&u, float64(sample.Value))
			}
			use[pod] = u
		}
	}
	return use, nil
}

// larger is the larger of an amount of CPU and a number of CPUs, which is rounded up to thousandths.
func larger(q resource.Quantity, cpus float64) resource.Quantity {
	if milli := int64(math.Ceil(cpus*1000 - 1e-6)); milli > q.MilliValue() {
		return *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	return q
}
