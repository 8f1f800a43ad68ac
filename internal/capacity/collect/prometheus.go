package collect

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
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

const (
	day          = 24 * time.Hour
	answerWithin = 2 * time.Minute
)

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
	var odd []string
	namespaces := r.podNamespaces()
	for i, namespace := range namespaces {
		use, warnings, err := useOf(ctx, server, namespace, days)
		if err != nil {
			return fmt.Errorf("Prometheus at %s, namespace %s: %w", client.URL("", nil).Redacted(), namespace, err)
		}
		if len(warnings) > 0 { // of a part of its stores, say: what is missing cannot be known
			return fmt.Errorf("Prometheus at %s, namespace %s, answers with a warning: %s; mend that first", client.URL("", nil).Redacted(), namespace, strings.Join(warnings, "; "))
		}
		for _, pod := range r.Pods {
			u, ok := use[pod.Name]
			if !ok || pod.Namespace != namespace {
				continue
			}
			if !u.whole() {
				odd = append(odd, snapshot.Key(pod))
				continue
			}
			r.Use[snapshot.Key(pod)] = u.Use
		}
		asked(i+1, len(namespaces))
	}
	if len(odd) > 0 {
		r.note("no use of %d pods, %s first: Prometheus' answers do not agree, or are no amounts", len(odd), slices.Min(odd))
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

// answers are what Prometheus says of a pod: the same days in each of its answers, or it cannot be known.
type answers struct {
	snapshot.Use
	days [3]map[model.Time]bool // by query
	odd  bool                   // a value is no amount
}

func (a *answers) whole() bool {
	return !a.odd && maps.Equal(a.days[0], a.days[1]) && maps.Equal(a.days[0], a.days[2]) && a.CPU.Cmp(a.P95) >= 0
}

// useOf is the use of a namespace's pods, by their names, and what Prometheus warns of.
func useOf(ctx context.Context, server prometheusv1.API, namespace string, days prometheusv1.Range) (use map[string]*answers, warnings []string, err error) {
	use = map[string]*answers{}
	for i, q := range []struct {
		query string
		note  func(u *answers, value float64)
	}{
		{highest, func(u *answers, v float64) { u.CPU = larger(u.CPU, v) }},
		{p95, func(u *answers, v float64) { u.P95 = larger(u.P95, v) }},
		{minutes, func(u *answers, v float64) { u.Hours += v / 60 }},
	} {
		answer, warned, err := ask(ctx, server, fmt.Sprintf(q.query, fmt.Sprintf(rates, namespace)), days)
		if err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, warned...)
		for _, series := range answer {
			pod := string(series.Metric["pod"])
			u := use[pod]
			if u == nil {
				u = &answers{}
				use[pod] = u
			}
			u.days[i] = map[model.Time]bool{}
			for _, sample := range series.Values {
				value := float64(sample.Value)
				u.days[i][sample.Timestamp] = true
				if !(value >= 0) || math.IsInf(value, 1) {
					u.odd = true
					continue
				}
				q.note(u, value)
			}
		}
	}
	return use, warnings, nil
}

// ask is one query, which has to be answered within answerWithin.
func ask(ctx context.Context, server prometheusv1.API, query string, days prometheusv1.Range) (model.Matrix, []string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("it has not answered within %v; ask for less with --window", answerWithin))
	defer stop()
	answer, warnings, _, err := server.QueryRange(ctx, query, days)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, nil, cause
		}
		return nil, nil, err
	}
	matrix, ok := answer.(model.Matrix)
	if !ok {
		return nil, nil, fmt.Errorf("it answers a range query with a %s", answer.Type())
	}
	return matrix, warnings, nil
}

// larger is the larger of an amount of CPU and a number of CPUs, which is rounded up to thousandths.
func larger(q resource.Quantity, cpus float64) resource.Quantity {
	if milli := int64(math.Ceil(cpus*1000 - 1e-6)); milli > q.MilliValue() {
		return *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	return q
}
