package pathfence

import (
	"context"
	"errors"
	"sync"

	"temper.dev/temper/pathfence/go/core"
)

// Permit is the right to be served. Any goroutine may use it. Methods of nil, which stands for a request without a permit, do
// nothing.
type Permit struct {
	fence   *Fence
	request Request
	parent  *Permit // of the request of this process that waits for this one; nil: none

	mu       sync.Mutex
	id       int64 // of the core; another one each time that the permit was taken again
	class    string
	edges    *core.Edges // of its class
	asked    bool        // for the first time
	pauses   int         // by Pause, less those that were ended
	resting  bool        // not taken yet, or given back by Answered until there is more to do
	released bool
	again    bool // it was taken again
}

// Class is the name of the request's class.
func (p *Permit) Class() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.class
}

func (p *Permit) held() bool { return p.pauses == 0 && !p.resting && !p.released }

// change changes whether the permit is held, and gives it back, or takes it again, where that follows.
func (p *Permit) change(outcome Outcome, change func()) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.held()
	change()
	if p.id == 0 {
		return // there is none yet: what it comes to is seen once there is
	}
	switch after := p.held(); {
	case before && !after:
		p.giveBack(outcome)
	case !before && after:
		p.takeAgain()
	}
}

// Release gives the permit back. Only the first call counts.
func (p *Permit) Release(outcome Outcome) {
	p.change(outcome, func() { p.released = true })
}

// Pause gives the permit back for as long as the request waits for something that is neither work nor a call: a message, an
// event. Resume takes it again. Pauses nest.
func (p *Permit) Pause() {
	p.change(Light, func() { p.pauses++ })
}

// Resume ends a Pause. It waits for nothing: for as long as the work that follows, more may be done than there are workers.
func (p *Permit) Resume() {
	p.change(Light, func() { p.pauses = max(0, p.pauses-1) })
}

// Answered gives the permit back once the first of several answers is there: what has happened until now counts as a request
// that went well. Working takes it again.
func (p *Permit) Answered() {
	p.change(OK, func() { p.resting = true })
}

// Idle gives the permit back while there is nothing to do for the request. Working takes it again.
func (p *Permit) Idle() {
	p.change(Light, func() { p.resting = true })
}

// Working takes the permit again after Answered or Idle, as Resume does.
func (p *Permit) Working() {
	p.change(Light, func() { p.resting = false })
}

// Ask takes the permit again after Answered or Idle as a new request does: it waits for its turn, and may be refused. Its errors
// are those of [Fence.Acquire]. Where there is nothing to take again, it does nothing.
func (p *Permit) Ask(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	there := !p.resting || p.released
	p.again = p.again || !there
	p.mu.Unlock()
	if there {
		return nil
	}
	return p.take(ctx, func() { p.resting = false })
}

// resumeInTurn ends a Pause as Ask takes a permit again. Where it is refused, the request goes on without one.
func (p *Permit) resumeInTurn(ctx context.Context) error {
	if p == nil {
		return nil
	}
	end := func() { p.pauses = max(0, p.pauses-1) }
	p.mu.Lock()
	if p.pauses != 1 || p.resting || p.released {
		end() // it is not to be held, or is already
		p.mu.Unlock()
		return nil
	}
	p.again = true
	p.mu.Unlock()
	err := p.take(ctx, end)
	if err != nil {
		p.change(Cancel, func() { end(); p.resting = true })
	}
	return err
}

// giveBack tells the core how the request ended.
func (p *Permit) giveBack(outcome Outcome) {
	// What is left of a request after a wait is work like the others' only if it takes as long.
	if outcome == OK && p.again {
		outcome = Light
	}
	p.fence.with(func(now core.Time) []core.Event { return p.fence.core.Done(now, p.id, outcome) })
}

func (p *Permit) takeAgain() {
	p.again = true
	parent := p.parent.core()
	p.fence.with(func(now core.Time) []core.Event {
		p.fence.lastID++
		p.id = p.fence.lastID
		var decided []core.Event
		if p.fence.core.Runs(parent) {
			decided = p.fence.core.Arrive(now, core.Request{ID: p.id, Key: p.request.Key, Parent: parent})
		} else {
			decided = p.fence.core.Resume(now, p.id, p.request.Key)
		}
		p.class, p.edges = decided[len(decided)-1].Class, p.fence.core.EdgesOf(p.id)
		return decided
	})
}

// acquire waits for a permit that was not taken yet. One that was released or paused meanwhile is given back.
func (p *Permit) acquire(ctx context.Context) error {
	p.mu.Lock()
	again := p.asked
	p.asked = true
	p.mu.Unlock()
	if again {
		return errors.New("pathfence: a request is admitted once")
	}
	return p.take(ctx, func() { p.resting = false })
}

// take waits for a permit that is not held, and then changes what kept it from being so.
func (p *Permit) take(ctx context.Context, taken func()) error {
	p.mu.Lock()
	again := p.again
	p.mu.Unlock()
	id, class, edges, err := p.fence.acquire(ctx, p.request, p.nests(), again)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id != 0 && p.held() { // another goroutine has taken it meanwhile
		p.fence.with(func(now core.Time) []core.Event { return p.fence.core.Done(now, id, Cancel) })
		return nil
	}
	p.id, p.class, p.edges = id, class, edges
	taken()
	if !p.held() {
		p.giveBack(Cancel)
	}
	return nil
}

// nests makes the request a part of the one that waits for it, and gives what the core knows that as; 0: that has no permit now,
// and so is not in its way. Beyond MaxDepth it is a circle.
func (p *Permit) nests() int64 {
	parent := p.parent.core()
	if parent == 0 {
		return 0
	}
	p.request.Depth = max(p.request.Depth, p.parent.request.Depth+1)
	if p.request.Depth > core.MaxDepth {
		p.parent, parent = nil, 0
	}
	return parent
}

// core is what the core knows the permit as; 0: it is not held.
func (p *Permit) core() int64 {
	id, _ := p.coreAndEdges()
	return id
}

func (p *Permit) coreAndEdges() (int64, *core.Edges) {
	if p == nil {
		return 0, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held() {
		return 0, nil
	}
	return p.id, p.edges
}

// Edge says that the request calls something: a service, a database. Paths that call the same are one class, unless they
// are named. Transport says it by itself. One that is not valid as a key is ignored.
func (p *Permit) Edge(name string) {
	if id, edges := p.coreAndEdges(); id != 0 && !edges.Settled(name) {
		p.fence.with(func(now core.Time) []core.Event { return p.fence.core.Edge(now, id, name) })
	}
}
