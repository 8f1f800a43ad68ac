package fenceprofile

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"temper.dev/temper/pathfence/go/core"
)

func TestSteps(t *testing.T) {
	for most, want := range map[int64][]int64{1: {1}, 2: {1, 2}, 5: {1, 2, 3, 4, 5}, 6: {1, 2, 3, 4, 6}, 64: {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}, 50: {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 50}} {
		if got := Steps(most); !slices.Equal(got, want) {
			t.Errorf("%d: %v", most, got)
		}
	}
}

// curve measures a service by a formula.
func curve(list []int64, good func(c int64) float64) (steps []Step) {
	for _, c := range list {
		steps = append(steps, Step{Concurrency: c, Good: good(c), Done: good(c), Hold: 4 * time.Millisecond})
	}
	return steps
}

func TestShapes(t *testing.T) {
	list := Steps(64)
	for _, c := range []struct {
		what        string
		good        func(c int64) float64
		knee, limit int64
		shape       string
	}{
		{"a plateau from 8 on", func(c int64) float64 { return 250 * float64(min(c, 8)) }, 8, 10, "plateau"},
		{"a plateau from 1 on", func(int64) float64 { return 250 }, 1, 2, "plateau"},
		{"no plateau", func(c int64) float64 { return 250 * float64(c) }, 64, 0, "rising"},
		{"thrash beyond 6", func(c int64) float64 { return 250 * float64(min(c, 6)) / (1 + float64(max(c-6, 0))/2) }, 6, 6, "falling"},
	} {
		p, err := Of("orders", curve(list, c.good))
		if err != nil {
			t.Fatal(err)
		}
		if p.Knee != c.knee || p.Limit != c.limit || !strings.Contains(p.Shape, c.shape) || p.Hold != 4*time.Millisecond {
			t.Errorf("%s: knee %d, limit %d, %s", c.what, p.Knee, p.Limit, p.Shape)
		}
	}
	for what, steps := range map[string][]Step{
		"too few":      curve([]int64{1, 2, 3}, func(int64) float64 { return 1 }),
		"nothing good": curve(list, func(int64) float64 { return 0 }),
		"no order":     curve([]int64{1, 2, 2, 3}, func(int64) float64 { return 1 }),
	} {
		if _, err := Of("orders", steps); err == nil {
			t.Errorf("%s is an error", what)
		}
	}
}

// So many requests are under way, all the time and never more; what is no success or too late is not good.
func TestRampKeepsItsConcurrency(t *testing.T) {
	const at, enough = 5, 50
	ctx, end := context.WithCancel(t.Context())
	var (
		mutex       sync.Mutex
		here, most  int
		everybody   = make(chan struct{})
		answered, n int
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		here++
		most = max(most, here)
		if here == at && everybody != nil {
			close(everybody)
			everybody = nil
		}
		wait := everybody
		n++
		fails := n%2 == 0
		mutex.Unlock()
		if wait != nil {
			select {
			case <-wait:
			case <-r.Context().Done():
			}
		}
		mutex.Lock()
		here--
		answered++
		if answered%enough == 0 {
			end()
		}
		mutex.Unlock()
		if fails {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	step, err := Ramp(ctx, server.URL, at, time.Hour, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	mutex.Lock()
	if most != at || everybody != nil {
		t.Errorf("%d requests were under way at most, not %d", most, at)
	}
	if step.Concurrency != at || step.Good <= 0 || step.Good >= step.Done || step.Hold <= 0 {
		t.Errorf("%+v, of %d answers", step, answered)
	}
	ctx, end = context.WithCancel(t.Context())
	defer end()
	mutex.Unlock()
	late, err := Ramp(ctx, server.URL, 1, 0, time.Hour)
	if err != nil || late.Good != 0 || late.Done == 0 {
		t.Errorf("all are too late: %+v, %v", late, err)
	}
}

func TestRampSaysWhoDoesNotAnswer(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if _, err := Ramp(t.Context(), gone.URL, 3, time.Second, time.Minute); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
	held := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	defer silent.Close()
	defer close(held)
	if _, err := Ramp(t.Context(), silent.URL, 2, time.Second, 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "answered nothing") {
		t.Errorf("nobody answers: %v", err)
	}
}

func TestReadSteps(t *testing.T) {
	steps, err := ReadSteps("f", strings.NewReader("# at a time, good/s, ms\n1, 250, 4\n2,500.5,4.25\n"))
	if err != nil || len(steps) != 2 || steps[1].Concurrency != 2 || steps[1].Good != 500.5 || steps[1].Hold != 4250*time.Microsecond {
		t.Errorf("%+v, %v", steps, err)
	}
	for _, text := range []string{"1,2", "0,1,1", "1,-1,1", "1,NaN,1", "1,Inf,1", "a,1,1", "1,1,1,1"} {
		if _, err := ReadSteps("f", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "f") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPutAndWrite(t *testing.T) {
	p, err := Of("orders", curve(Steps(16), func(c int64) float64 { return 250 * float64(min(c, 6)) }))
	if err != nil {
		t.Fatal(err)
	}
	cfg := core.Config{Workers: 16, Classes: []core.ClassConfig{{Name: "items", Limit: 3}, {Name: "orders", Keys: []string{"k"}, Weight: 7}}}
	Put(&cfg, []Profile{p})
	if got := fmt.Sprint(cfg.Classes); got != "[{items [] 0 0 3 0} {orders [k] 7 0 7 4000000}]" {
		t.Error(got)
	}
	var text bytes.Buffer
	p.Write(&text)
	if !strings.Contains(text.String(), "orders · a plateau · knee 6 · limit 7\n") || strings.Count(text.String(), "knee\n") != 1 ||
		!strings.Contains(text.String(), strings.Repeat("█", widest)) || strings.Contains(text.String(), strings.Repeat("█", widest+1)) {
		t.Error(text.String())
	}
}
