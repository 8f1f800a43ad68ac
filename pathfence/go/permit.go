package pathfence

import (
	"sync"

	"temper.dev/temper/pathfence/go/core"
)

// Permit is the right to be served. Any goroutine may use it.
type Permit struct {
	fence *Fence
	key   string
	depth int64

	mu       sync.Mutex
	id       int64 // of the core; another one each time that the permit was taken again
	class    string
	paused   bool
	released bool
}

// Class is the name of the request's class.
func (p *Permit) Class() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.class
}

// Release gives the permit back. Only the first call counts.
func (p *Permit) Release(outcome Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released {
		return
	}
	p.released = true
	if !p.paused {
		p.giveBack(outcome)
	}
}

func (p *Permit) giveBack(outcome Outcome) {
	p.fence.with(func(now core.Time) []core.Event { return p.fence.core.Done(now, p.id, outcome) })
}

// Pause gives the permit back for as long as the request waits for something that is neither work nor a call: a message, an
// event, a client. Resume takes it again.
func (p *Permit) Pause() { p.pause(Light) }

// Answered gives the permit back as Pause does, for a request whose first answer, of several, is there: what has happened until
// now counts as a request that went well.
func (p *Permit) Answered() { p.pause(OK) }

func (p *Permit) pause(outcome Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.released {
		return
	}
	p.paused = true
	p.giveBack(outcome)
}

// Resume takes the permit again after Pause. It waits for nothing: for a moment more may be served than there are workers.
func (p *Permit) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.paused || p.released {
		return
	}
	p.paused = false
	p.fence.with(func(now core.Time) []core.Event {
		p.fence.lastID++
		p.id = p.fence.lastID
		decided := p.fence.core.Resume(now, p.id, p.key)
		p.class = decided[len(decided)-1].Class
		return decided
	})
}

// Edge says that the request calls something: a service, a database. Paths that call the same are one class, unless they
// are named. Transport says it by itself. One that is not valid as a key is ignored.
func (p *Permit) Edge(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.released {
		return
	}
	p.fence.with(func(now core.Time) []core.Event { return p.fence.core.Edge(now, p.id, name) })
}

// name names the request for calls that it makes; empty: it has no permit.
func (p *Permit) name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.released {
		return ""
	}
	return p.fence.secret.Name(p.id, p.depth)
}
