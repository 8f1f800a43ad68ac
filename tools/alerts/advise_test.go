package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	prometheusapi "github.com/prometheus/prometheus/web/api/v1"
)

// pods of which Prometheus has data, and one of which it has none.
const pods = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {temper.dev/highest-tier: critical}}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: web}, spec: {priorityClassName: temper-critical, containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: batch}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: young}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: unknown}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}
`

// 'kubectl temper advise' asks Prometheus' own engine, storage and API.
func TestAdviseAsksPrometheus(t *testing.T) {
	for name, every := range map[string]time.Duration{"samples each 15 s": 15 * time.Second, "samples each 60 s": time.Minute} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, fill(t, time.Now(), every))
			for _, c := range []struct {
				pod                          string
				hours, highest, p95, advised float64 // NaN: none
				why                          string
			}{
				{"shop/web", 48, 1.5, 0.2, 1.5, ""},
				{"shop/batch", 48, 1.5, 0.2, 0.2, ""},
				{"shop/young", 3.5, 0.2, 0.2, math.NaN(), "not enough data: 3 h of 24"},
				{"shop/unknown", 0, math.NaN(), math.NaN(), math.NaN(), "not enough data: 0 h of 24"},
			} {
				p, ok := advise(t, server)[c.pod]
				if !ok || math.Abs(p.Hours-c.hours) > 0.1 || !near(p.Highest, c.highest) || !near(p.P95, c.p95) || !near(p.Advised, c.advised) || p.Why != c.why {
					t.Errorf("%s is %v, want %+v", c.pod, p, c)
				}
			}
		})
	}
}

// fill has two days of the use of each pod: 0.2 CPUs, and 1.5 in one minute of the day before. The pod's own cgroup and its
// pause container are there, too, and must not count.
func fill(t *testing.T, now time.Time, every time.Duration) *teststorage.TestStorage {
	t.Helper()
	db := teststorage.New(t)
	into := db.Appender(context.Background()) // one for all: a later one takes no samples as old as those
	for _, pod := range []struct {
		name string
		data time.Duration
	}{{"web", 48 * time.Hour}, {"batch", 48 * time.Hour}, {"young", 210 * time.Minute}} {
		for _, container := range []string{"c", "", "POD"} {
			series := labels.FromStrings("__name__", "container_cpu_usage_seconds_total", "namespace", "shop", "pod", pod.name, "container", container)
			seconds := 0.0
			for at := now.Add(-pod.data); !at.After(now); at = at.Add(every) {
				use := 0.2
				if ago := now.Sub(at); ago >= 30*time.Hour && ago < 30*time.Hour+time.Minute {
					use = 1.5
				}
				seconds += use * every.Seconds()
				if _, err := into.Append(0, series, at.UnixMilli(), seconds); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := into.Commit(); err != nil {
		t.Fatal(err)
	}
	return db
}

// serve is Prometheus' API on that storage. What is nil serves other parts of it.
func serve(t *testing.T, db storage.SampleAndChunkQueryable) string {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{Logger: slog.New(slog.DiscardHandler), MaxSamples: 50_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	always := func(f http.HandlerFunc) http.HandlerFunc { return f }
	api := prometheusapi.NewAPI(engine, db, nil, nil, nil, nil, nil, func() config.Config { return config.Config{} }, nil, prometheusapi.GlobalURLOptions{}, always,
		nil, t.TempDir(), false, false, 0, slog.New(slog.DiscardHandler), nil, 0, 0, 0, false, nil, nil, nil, nil, nil,
		prometheus.NewRegistry(), prometheus.NewRegistry(), nil, false, nil, false, false, false, 5*time.Minute, false, false, nil, nil,
		prometheusapi.OpenAPIOptions{}, parser.NewParser(parser.Options{}), false, time.Minute)
	router := route.New().WithPrefix("/api/v1")
	api.Register(router)
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return server.URL
}

type pod struct {
	Pod     string
	Hours   float64
	Highest *float64 `json:"highestMinuteCPUs"`
	P95     *float64 `json:"p95CPUs"`
	Advised *float64 `json:"advisedCPUs"`
	Why     string
}

// near is whether a number is there and as large as wanted, but for what two lookers at a rate may differ in.
func near(got *float64, want float64) bool {
	if got == nil || math.IsNaN(want) {
		return got == nil && math.IsNaN(want)
	}
	return math.Abs(*got-want) < 0.002
}

func advise(t *testing.T, server string) map[string]pod {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pods.yaml")
	if err := os.WriteFile(file, []byte(pods), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), repository+"/bin/kubectl-temper", "advise", "-f", file, "--prometheus", server, "--json")
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.Bytes())
	}
	var said struct{ Pods []pod }
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatal(err)
	}
	byName := map[string]pod{}
	for _, p := range said.Pods {
		byName[p.Pod] = p
	}
	return byName
}
