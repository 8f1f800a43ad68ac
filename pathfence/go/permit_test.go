package pathfence_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/internal/fencetest"
)

func TestPauses(t *testing.T) {
	fence, err := pathfence.New(pathfence.Config{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	permit, err := fence.Acquire(t.Context(), pathfence.Request{Key: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		does string
		do   func()
		want int64
	}{
		{"pause", permit.Pause, 0}, {"a pause within it", permit.Pause, 0}, {"the end of that", permit.Resume, 0}, {"the end", permit.Resume, 1},
		{"one more end", permit.Resume, 1}, {"answered", permit.Answered, 0}, {"a pause after it", permit.Pause, 0}, {"working in the pause", permit.Working, 0},
		{"the end of the pause", permit.Resume, 1}, {"idle", permit.Idle, 0}, {"working", permit.Working, 1},
		{"released", func() { permit.Release(pathfence.OK) }, 0}, {"resumed after that", permit.Resume, 0},
	} {
		c.do()
		if got := fence.State().InFlight; got != c.want {
			t.Errorf("%s: %d permits are out, want %d", c.does, got, c.want)
		}
	}
}

func TestNoPermit(t *testing.T) {
	permit := pathfence.PermitOf(context.Background())
	permit.Edge("db")
	permit.Pause()
	permit.Resume()
	permit.Release(pathfence.OK)
	if permit != nil || permit.Class() != "" {
		t.Errorf("without a request there is %v", permit)
	}
}

// outOfTime is a context whose time ends when its test says so.
type outOfTime struct {
	context.Context
	since chan struct{}
}

func (c *outOfTime) Done() <-chan struct{} { return c.since }

func (c *outOfTime) Err() error {
	select {
	case <-c.since:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestTimesOfARequest(t *testing.T) {
	cause := errors.New("the budget is used up")
	short, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, cause)
	defer cancel()
	fence, err := pathfence.New(pathfence.Config{Workers: 1, Target: time.Minute, Classes: []pathfence.Class{{Name: "it", Keys: []string{"it"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	if err := fence.Do(t.Context(), pathfence.Request{Key: "it", Timeout: math.MaxInt64}, func(context.Context) error { return nil }); err != nil {
		t.Errorf("the longest timeout gives %v", err)
	}
	if it := fence.State().Classes[0]; it.Missed != 0 {
		t.Errorf("missed are %d with the longest timeout, want 0", it.Missed)
	}
	out := &outOfTime{Context: t.Context(), since: make(chan struct{})}
	if err := fence.Do(out, pathfence.Request{Key: "it"}, func(ctx context.Context) error { close(out.since); return ctx.Err() }); err == nil {
		t.Error("what ends by its time gives no error")
	}
	if it := fence.State().Classes[0]; it.Failed != 1 {
		t.Errorf("failed are %d after one that ends by its time, want 1", it.Failed)
	}
	if _, err := fence.Acquire(t.Context(), pathfence.Request{Key: "it"}); err != nil {
		t.Fatal(err)
	}
	if _, err := fence.Acquire(short, pathfence.Request{Key: "it"}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cause) {
		t.Errorf("a wait that ends by its time gives %v, want the context's error, and its cause", err)
	}
}

// One permit is enough for a request that comes to its fence a second time, in whichever way.
func TestAFenceWithinItself(t *testing.T) {
	fence, err := pathfence.New(pathfence.Config{Workers: 1, Target: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	for _, off := range []bool{false, true} {
		fence.Off(off)
		inner, outer := http.NewServeMux(), http.NewServeMux()
		inner.HandleFunc("/api/it", func(http.ResponseWriter, *http.Request) {})
		outer.Handle("/api/", fence.Handler(inner))
		w := httptest.NewRecorder()
		fence.Handler(outer).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/it", nil))
		err := fence.Do(t.Context(), pathfence.Request{Key: "a"}, func(ctx context.Context) error {
			return fence.Do(ctx, pathfence.Request{Key: "b"}, func(context.Context) error { return nil })
		})
		if w.Code != http.StatusOK || err != nil {
			t.Errorf("off %v: handlers give %d, Do %v; want 200 and nil", off, w.Code, err)
		}
	}
}

// Whatever is done with a permit before it is there, none is left out.
func TestWhatIsDoneBeforeAPermitIsThere(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(*pathfence.Permit)
		held   int64 // once it is admitted
	}{
		{"nothing", func(*pathfence.Permit) {}, 1},
		{"released", func(p *pathfence.Permit) { p.Release(pathfence.OK) }, 0},
		{"paused", (*pathfence.Permit).Pause, 0},
		{"paused and resumed", func(p *pathfence.Permit) { p.Pause(); p.Resume() }, 1},
		{"working", (*pathfence.Permit).Working, 1},
		{"idle", (*pathfence.Permit).Idle, 1},
		{"answered", (*pathfence.Permit).Answered, 1},
		{"an edge", func(p *pathfence.Permit) { p.Edge("store") }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			fence, err := pathfence.New(pathfence.Config{Workers: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer fence.Close()
			serving := fence.Prepare(t.Context(), pathfence.Incoming{Key: "a", Header: func(string) string { return "" }})
			c.before(serving.Permit())
			if now := fence.State(); now.InFlight != 0 {
				t.Errorf("before it is admitted %d permits are out", now.InFlight)
			}
			if err := serving.Admit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if now := fence.State(); now.InFlight != c.held {
				t.Errorf("%d permits are out, want %d", now.InFlight, c.held)
			}
			if err := serving.Admit(t.Context()); err == nil || fence.State().InFlight != c.held {
				t.Errorf("admitted twice: %v, %d permits are out", err, fence.State().InFlight)
			}
			serving.Permit().Resume()
			serving.Permit().Release(pathfence.OK)
			serving.Permit().Working()
			if now := fence.State(); now.InFlight != 0 || now.Waiting != 0 {
				t.Errorf("at the end %d permits are out, %d wait", now.InFlight, now.Waiting)
			}
		})
	}
}

// A request whose caller gives its permit back before it is admitted is not within it: no workers are kept for such.
func TestACallerThatPausesIsInNobodysWay(t *testing.T) {
	for _, paused := range []bool{false, true} {
		fence, err := pathfence.New(pathfence.Config{Workers: 4, Classes: []pathfence.Class{{Name: "a", Keys: []string{"a"}}}})
		if err != nil {
			t.Fatal(err)
		}
		defer fence.Close()
		ctx := t.Context()
		var chain []*pathfence.Permit
		for range 4 {
			serving := fence.Prepare(ctx, pathfence.Incoming{Key: "a", Header: func(string) string { return "" }})
			if paused && len(chain) > 0 {
				chain[len(chain)-1].Pause()
			}
			if err := serving.Admit(ctx); err != nil {
				t.Fatal(err)
			}
			ctx = serving.In(ctx)
			chain = append(chain, serving.Permit())
		}
		if now := fence.State(); now.InFlight != 1 {
			t.Errorf("paused %v: of the chain %d are in flight, want 1", paused, now.InFlight)
		}
		for _, permit := range chain {
			permit.Release(pathfence.OK)
		}
		for i := range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := fence.Acquire(ctx, pathfence.Request{Key: "a"}); err != nil {
				t.Errorf("paused %v: of 4 workers %d are to be had: %v", paused, i, err)
			}
			cancel()
		}
	}
}

// What waits for its turn is not needed any more where another goroutine has taken the permit.
func TestAskWhileAnotherTakesIt(t *testing.T) {
	fence, err := pathfence.New(pathfence.Config{Workers: 2, Target: time.Minute, Classes: []pathfence.Class{{Name: "a", Keys: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	acquire := func() *pathfence.Permit {
		p, err := fence.Acquire(t.Context(), pathfence.Request{Key: "a"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	it := acquire()
	it.Idle()
	others := []*pathfence.Permit{acquire(), acquire()}
	asked := make(chan error)
	go func() { asked <- it.Ask(t.Context()) }()
	fencetest.Awaits(t, fence, "it waits", func(now pathfence.State) bool { return now.Waiting == 1 })
	it.Working()
	for _, other := range others {
		other.Release(pathfence.OK)
	}
	if err := <-asked; err != nil {
		t.Errorf("it gives %v, want none", err)
	}
	if got := fence.State().InFlight; got != 1 {
		t.Errorf("%d permits are out, want 1", got)
	}
	it.Release(pathfence.OK)
	if got := fence.State().InFlight; got != 0 {
		t.Errorf("%d permits are out at the end, want 0", got)
	}
}
