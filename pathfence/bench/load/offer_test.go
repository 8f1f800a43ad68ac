package load

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// target answers as a function says.
type target func(path string, work time.Duration, deadline time.Time) error

func (t target) Ask(path string, work time.Duration, deadline time.Time) error {
	return t(path, work, deadline)
}

func arrivals(n int, path string) []Arrival {
	list := make([]Arrival, n)
	for i := range list {
		list[i] = Arrival{At: time.Duration(i) * time.Millisecond, Path: path}
	}
	return list
}

// No answer comes before the last request was sent: whoever waits for answers never ends.
func TestOpenLoop(t *testing.T) {
	const n = 50
	var asked sync.WaitGroup
	asked.Add(n)
	list := arrivals(n, "a")
	results, err := Open(t.Context(), time.Now(), list, target(func(string, time.Duration, time.Time) error {
		asked.Done()
		asked.Wait()
		return nil
	}), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	last := list[n-1].At
	for i, r := range results {
		if r.Arrival != list[i] || r.Fate != Answered {
			t.Fatalf("result %d is %+v", i, r)
		}
		// Latency runs from when a request was due: the first one waited for the last one to be sent.
		if r.Late < 0 || r.Latency < r.Late || r.At+r.Latency < last {
			t.Errorf("request %d, due at %v: late %v, latency %v", i, r.At, r.Late, r.Latency)
		}
	}
}

func TestFates(t *testing.T) {
	start := time.Now()
	fates := map[string]error{"a": nil, "b": ErrRefused, "c": errors.New("the connection was closed")}
	var list []Arrival
	for path := range fates {
		list = append(list, arrivals(1, path)...)
	}
	results, err := Open(t.Context(), start, list, target(func(path string, _ time.Duration, deadline time.Time) error {
		if !deadline.Equal(start.Add(time.Second)) {
			t.Errorf("the deadline is %v after the start, not a second", deadline.Sub(start))
		}
		return fates[path]
	}), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if want := map[string]Fate{"a": Answered, "b": Refused, "c": Lost}[r.Path]; r.Fate != want {
			t.Errorf("%s: fate %v, not %v", r.Path, r.Fate, want)
		}
	}
}

func TestOpenIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Open(ctx, time.Now(), arrivals(1000, "a"), target(func(string, time.Duration, time.Time) error {
		cancel()
		return nil
	}), time.Second)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// So many requests are under way, and never more: each waits until all others are there.
func TestClosedLoop(t *testing.T) {
	const n, rounds = 5, 20
	ctx, cancel := context.WithCancel(t.Context())
	var (
		mutex        sync.Mutex
		under, total int
		full         = make(chan struct{})
	)
	results, err := Closed(ctx, time.Now(), time.Now().Add(time.Hour), n, flow("a", 1), 7, target(func(string, time.Duration, time.Time) error {
		mutex.Lock()
		under, total = under+1, total+1
		if under > n {
			t.Errorf("%d requests at a time", under)
		}
		if total == n*rounds {
			cancel()
		}
		mine := full
		if under == n {
			under, full = 0, make(chan struct{})
			close(mine)
		}
		mutex.Unlock()
		<-mine
		return nil
	}), time.Second)
	if !errors.Is(err, context.Canceled) || len(results) != n*rounds {
		t.Errorf("%d requests and %v, not %d", len(results), err, n*rounds)
	}
}
