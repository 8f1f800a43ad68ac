package pathfence

import (
	"context"
	"errors"
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

const closed = "closed"

// Fence decides which request has a permit, which waits, and which is refused. It may be used by any number of goroutines.
type Fence struct {
	service    string
	onDecision func(Decision) // may be nil
	origin     time.Time
	ticker     *time.Ticker
	ended      chan struct{}

	mu      sync.Mutex
	core    *core.Fence
	waiters map[int64]chan core.Event // of requests that wait; each has room for the one decision
	lastID  int64
	closed  bool

	watchError *string // why the watched file is not in force; nil: it is, or there is none
}

// New starts a fence. Close ends its goroutine.
func New(config Config) (*Fence, error) {
	if err := config.checkNames(); err != nil {
		return nil, err
	}
	decides, err := core.New(config.core(), 0)
	if err != nil {
		return nil, inGo(err)
	}
	f := &Fence{
		service: config.Service, onDecision: config.OnDecision, origin: time.Now(), core: decides,
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

	untrusted bool // the timeout may only shorten the target
}

// Acquire waits for a permit, which has to be released. The error is a *RefusedError, or the context's, which is that of a
// client that went away: the request is withdrawn then. With the context of a request that has a permit of this fence, it runs
// on that one: both would wait for each other else.
func (f *Fence) Acquire(ctx context.Context, r Request) (*Permit, error) {
	p := f.permit(r, ServingOf(ctx))
	if err := p.acquire(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// permit is one that is not taken yet, for a request that another of this process makes; nil: none.
func (f *Fence) permit(r Request, caller *Serving) *Permit {
	return &Permit{fence: f, request: r, parent: caller.permitOf(f), resting: true}
}

// acquire waits for a permit, and gives what the core knows it as, its class, and that class's edges. again is one of a request that
// had one: OnDecision was told that it is granted.
func (f *Fence) acquire(ctx context.Context, r Request, parent int64, again bool) (id int64, class string, edges *core.Edges, err error) {
	if ctx.Err() != nil {
		return 0, "", nil, ended(ctx) // nobody waits for what it would do
	}
	began := f.watch()
	id, edges, decision, waiter := f.arrive(r, parent)
	if waiter != nil {
		select {
		case decision = <-waiter:
		case <-ctx.Done():
			f.tellDecision(f.withdraw(id, waiter), Withdrawn, began)
			return 0, "", nil, ended(ctx)
		}
	}
	if decision.Do != "grant" {
		f.tellDecision(decision.Class, decision.Reason, began)
		return 0, "", nil, &RefusedError{decision.Reason}
	}
	if again {
		return id, decision.Class, edges, nil
	}
	told := false
	defer func() {
		if !told { // it panics, and nobody will release the permit
			f.with(func(now core.Time) []core.Event { return f.core.Done(now, id, Cancel) })
		}
	}()
	f.tellDecision(decision.Class, Granted, began)
	told = true
	return id, decision.Class, edges, nil
}

// withdraw takes a request back that waits, or was decided in this moment, and gives its class.
func (f *Fence) withdraw(id int64, waiter <-chan core.Event) (class string) {
	f.with(func(now core.Time) []core.Event {
		delete(f.waiters, id)
		class = f.core.ClassOf(id)
		return f.core.Done(now, id, Cancel) // granted meanwhile: it goes back
	})
	if class == "" {
		class = (<-waiter).Class // refused meanwhile
	}
	return class
}

// ended is why a context has ended: it is the context's error, whatever its cause.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// arrive offers a request. What was not decided at once comes through the channel.
func (f *Fence) arrive(r Request, parent int64) (id int64, edges *core.Edges, decision core.Event, waiter chan core.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, nil, core.Event{Reason: closed}, nil
	}
	now := f.now()
	f.lastID++
	id = f.lastID
	decided := f.core.Arrive(now, core.Request{ID: id, Key: r.Key, Deadline: deadline(now, r.Timeout), Shortens: r.untrusted, Depth: r.Depth, Parent: parent})
	f.tell(decided)
	edges = f.core.EdgesOf(id)
	for _, e := range decided {
		if e.ID == id {
			return id, edges, e, nil
		}
	}
	waiter = make(chan core.Event, 1)
	f.waiters[id] = waiter
	return id, edges, core.Event{}, waiter
}

func deadline(now core.Time, timeout time.Duration) core.Time {
	if timeout <= 0 {
		return 0
	}
	return now + int64(min(timeout, wire.Longest))
}

// Do does something with a permit that it waits for. What gives an error, or panics, counts as failed.
func (f *Fence) Do(ctx context.Context, r Request, work func(ctx context.Context) error) error {
	s := &Serving{fence: f, carried: wire.Context{Path: r.Key, Timeout: r.Timeout}, since: time.Now(), caller: ServingOf(ctx)}
	s.permit = f.permit(r, s.caller)
	if err := s.permit.acquire(ctx); err != nil {
		return err
	}
	permit := s.permit
	defer permit.Release(Fail)
	if err := work(s.In(ctx)); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			permit.Release(Cancel)
		}
		return err
	}
	permit.Release(OK)
	return nil
}

// Reload puts another configuration in force, under load. One that is not valid changes nothing. Service and OnDecision stay what they
// were.
func (f *Fence) Reload(config Config) (err error) {
	if err := config.checkNames(); err != nil {
		return err
	}
	f.with(func(now core.Time) (decided []core.Event) {
		decided, err = f.core.Reload(now, config.core())
		if err = inGo(err); err == nil {
			f.ticker.Reset(config.tick())
		}
		return decided
	})
	return err
}

// Off switches the fence off, or on again. Off, it is as if there were none: what waits and what comes is served at once, however
// many that are.
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
		w <- core.Event{Reason: closed}
	}
	clear(f.waiters)
}
