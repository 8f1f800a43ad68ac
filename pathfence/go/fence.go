package pathfence

import (
	"context"
	"fmt"
	"sync"
	"time"

	"temper.dev/temper/pathfence/go/core"
	"temper.dev/temper/pathfence/go/internal/wire"
)

// Outcome says how a request ended.
type Outcome = core.Outcome

// The outcomes.
const (
	// OK: it did what it was asked for.
	OK = core.OK
	// Fail: what it calls refused, failed, or timed out.
	Fail = core.Fail
	// Cancel: its client went away, which says nothing of what it calls.
	Cancel = core.Cancel
	// Light: an answer without success that is nobody's failure, such as 404; or the request goes on without a permit.
	Light = core.Light
)

// RefusedError is why a request got no permit.
type RefusedError struct {
	// Reason is expired, late, full, depth, or closed where the fence was closed.
	Reason string
}

func (e *RefusedError) Error() string { return "refused by the fence: " + e.Reason }

var errClosed = &RefusedError{"closed"}

// Fence decides which request has a permit, which waits, and which is refused. It may be used by any number of goroutines.
type Fence struct {
	service string
	secret  wire.Secret
	origin  time.Time
	ticker  *time.Ticker
	ended   chan struct{}

	mu      sync.Mutex
	core    *core.Fence
	waiters map[int64]chan core.Event // of requests that wait; each has room for the one decision
	lastID  int64
	closed  bool
}

// New starts a fence. Close ends its goroutine.
func New(config Config) (*Fence, error) {
	if err := config.checkNames(); err != nil {
		return nil, err
	}
	decides, err := core.New(config.core(), 0)
	if err != nil {
		return nil, fmt.Errorf("pathfence.Config: %w", err)
	}
	f := &Fence{
		service: config.Service, secret: wire.NewSecret(), origin: time.Now(), core: decides,
		waiters: map[int64]chan core.Event{}, ended: make(chan struct{}), ticker: time.NewTicker(config.tick()),
	}
	go f.tick()
	return f, nil
}

func (f *Fence) tick() {
	for {
		select {
		case <-f.ticker.C:
			f.with(f.core.Tick)
		case <-f.ended:
			return
		}
	}
}

func (f *Fence) now() core.Time { return int64(time.Since(f.origin)) }

// with does something with the core, and tells those who waited what was decided.
func (f *Fence) with(do func(now core.Time) []core.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell(do(f.now()))
}

func (f *Fence) tell(decided []core.Event) {
	for _, e := range decided {
		if w := f.waiters[e.ID]; w != nil && (e.Do == "grant" || e.Do == "shed") {
			delete(f.waiters, e.ID)
			w <- e
		}
	}
}

// Request is what the fence is asked for a permit for.
type Request struct {
	// Key names the path: 1 to 64 of a-z A-Z 0-9 . _ / : + - ~. One that is not valid shares a bucket with all such.
	Key string
	// Timeout is how long the request has; 0: its class's target.
	Timeout time.Duration
	// Depth is how often its chain of calls has been in this service before.
	Depth int64

	untrusted bool  // the timeout may only shorten the target
	parent    int64 // the permit of the request of this process that waits for it; 0: none
}

// Acquire waits for a permit, which has to be released. The error is a *RefusedError, or the context's, which is that of a
// client that went away: the request is withdrawn then.
func (f *Fence) Acquire(ctx context.Context, r Request) (*Permit, error) {
	id, decision, waiter := f.arrive(ctx, r)
	if waiter != nil {
		select {
		case decision = <-waiter:
		case <-ctx.Done():
			f.with(func(now core.Time) []core.Event {
				delete(f.waiters, id)
				return f.core.Done(now, id, Cancel) // granted meanwhile: it goes back
			})
			return nil, context.Cause(ctx)
		}
	}
	if decision.Do != "grant" {
		return nil, &RefusedError{decision.Reason}
	}
	return &Permit{fence: f, id: id, key: r.Key, class: decision.Class, depth: r.Depth}, nil
}

// arrive offers a request. What was not decided at once comes through the channel.
func (f *Fence) arrive(ctx context.Context, r Request) (id int64, decision core.Event, waiter chan core.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, core.Event{Reason: errClosed.Reason}, nil
	}
	now := f.now()
	f.lastID++
	id = f.lastID
	decided := f.core.Arrive(now, core.Request{ID: id, Key: r.Key, Deadline: f.deadline(now, r), Depth: r.Depth, Parent: r.parent})
	f.tell(decided)
	for _, e := range decided {
		if e.ID == id {
			return id, e, nil
		}
	}
	waiter = make(chan core.Event, 1)
	f.waiters[id] = waiter
	return id, core.Event{}, waiter
}

func (f *Fence) deadline(now core.Time, r Request) core.Time {
	switch {
	case r.Timeout <= 0:
		return 0
	case r.untrusted:
		return now + min(int64(r.Timeout), f.core.Target(r.Key))
	}
	return now + int64(r.Timeout)
}

// Do does something with a permit that it waits for. What gives an error, or panics, counts as failed.
func (f *Fence) Do(ctx context.Context, r Request, work func(ctx context.Context) error) error {
	since := time.Now()
	permit, err := f.Acquire(ctx, r)
	if err != nil {
		return err
	}
	defer permit.Release(Fail)
	s := &Serving{permit: permit, carried: wire.Context{Path: r.Key, Timeout: r.Timeout}, since: since}
	if err := work(s.In(ctx)); err != nil {
		if ctx.Err() != nil {
			permit.Release(Cancel)
		}
		return err
	}
	permit.Release(OK)
	return nil
}

// Reload puts another configuration in force, under load. One that is not valid changes nothing. Service stays what it was.
func (f *Fence) Reload(config Config) (err error) {
	if err := config.checkNames(); err != nil {
		return err
	}
	f.with(func(now core.Time) (decided []core.Event) {
		decided, err = f.core.Reload(now, config.core())
		if err == nil {
			f.ticker.Reset(config.tick())
		}
		return decided
	})
	return err
}

// Off switches the fence off, or on again. Off, what waits and what comes is served in order of arrival, and nothing is refused.
func (f *Fence) Off(off bool) {
	f.with(func(now core.Time) []core.Event { return f.core.Switch(now, off) })
}

// Close refuses all that waits and all that comes, and ends the fence's goroutine. Permits that are out may come back.
func (f *Fence) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	f.ticker.Stop()
	close(f.ended)
	for id, w := range f.waiters {
		f.core.Done(f.now(), id, Cancel)
		w <- core.Event{Reason: errClosed.Reason}
	}
	clear(f.waiters)
}
