package pathfence_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/internal/fencetest"
)

// decisions are all that a fence has told of.
type decisions struct {
	mu  sync.Mutex
	all []pathfence.Decision
}

func (d *decisions) add(one pathfence.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, one)
}

func (d *decisions) outcomes() (list []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.all {
		list = append(list, one.Class+" "+one.Outcome)
	}
	slices.Sort(list)
	return list
}

func TestWhatCameOfEachRequestIsTold(t *testing.T) {
	one := pathfence.Request{Key: "it", Timeout: time.Minute}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, fence *pathfence.Fence)
		want []string
	}{
		{"granted", func(t *testing.T, fence *pathfence.Fence) {
			p, _ := fence.Acquire(t.Context(), one)
			p.Release(pathfence.OK)
		}, []string{"it granted"}},
		{"too deep", func(t *testing.T, fence *pathfence.Fence) {
			_, _ = fence.Acquire(t.Context(), pathfence.Request{Key: "it", Depth: 100})
		}, []string{"it depth"}},
		{"the caller goes while it waits", func(t *testing.T, fence *pathfence.Fence) {
			p, _ := fence.Acquire(t.Context(), one)
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() { defer close(gone); _, _ = fence.Acquire(ctx, one) }()
			fencetest.Awaits(t, fence, "it waits", func(now pathfence.State) bool { return now.Waiting == 1 })
			cancel()
			<-gone
			p.Release(pathfence.OK)
		}, []string{"it granted", "it withdrawn"}},
		{"the caller has gone", func(t *testing.T, fence *pathfence.Fence) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if p, err := fence.Acquire(ctx, one); p != nil || err != context.Canceled {
				t.Errorf("it has %v and %v, want none and %v", p, err, context.Canceled)
			}
		}, nil},
		{"the fence is closed", func(t *testing.T, fence *pathfence.Fence) {
			fence.Close()
			_, _ = fence.Acquire(t.Context(), one)
		}, []string{" closed"}},
		{"by Do", func(t *testing.T, fence *pathfence.Fence) {
			_ = fence.Do(t.Context(), one, func(context.Context) error { return nil })
		}, []string{"it granted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told decisions
			fence, err := pathfence.New(pathfence.Config{
				Workers: 1, Classes: []pathfence.Class{{Name: "it", Keys: []string{"it"}}}, OnDecision: told.add,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer fence.Close()
			c.do(t, fence)
			if got := told.outcomes(); !slices.Equal(got, c.want) {
				t.Errorf("it tells %q, want %q", got, c.want)
			}
		})
	}
}

// A server may catch the panic of what is told, and go on.
func TestAPanicOfWhatIsToldKeepsNoPermit(t *testing.T) {
	fence, err := pathfence.New(pathfence.Config{Workers: 1, OnDecision: func(pathfence.Decision) { panic("told") }})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	func() {
		defer func() {
			if p := recover(); p != "told" {
				t.Errorf("it panics with %v, want told", p)
			}
		}()
		_, _ = fence.Acquire(t.Context(), pathfence.Request{Key: "it"})
	}()
	if n := fence.State().InFlight; n != 0 {
		t.Errorf("%d permits are out, want 0", n)
	}
}

// Whoever withdraws in the moment in which the fence decides is told of once, with a class.
func TestDecisionsBesideWithdrawals(t *testing.T) {
	var told decisions
	fence, err := pathfence.New(pathfence.Config{Workers: 1, Target: 20 * time.Millisecond, OnDecision: told.add})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	const callers, rounds = 8, 200
	var all sync.WaitGroup
	for g := range callers {
		all.Add(1)
		go func() {
			defer all.Done()
			for range rounds {
				ctx, cancel := context.WithCancel(context.Background())
				go cancel()
				if p, err := fence.Acquire(ctx, pathfence.Request{Key: fmt.Sprint("path", g)}); err == nil {
					p.Release(pathfence.OK)
				}
			}
		}()
	}
	all.Wait()
	for _, d := range told.all {
		if d.Class == "" || d.Outcome == "" || d.Waited < 0 {
			t.Fatalf("it tells %+v", d)
		}
	}
	if n := len(told.all); n == 0 || n > callers*rounds {
		t.Errorf("it tells of %d of %d requests", n, callers*rounds)
	}
}
