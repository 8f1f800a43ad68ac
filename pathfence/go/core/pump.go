package core

import "slices"

const (
	MaxDepth   = 8
	depthLife  = 60_000 * ms
	minQueue   = 32
	queueScale = 4 // a queue holds this many times what the limit serves within the target
)

// enqueue puts a request at the end of its class's queue, and makes room first where there is none.
func (f *Fence) enqueue(c *class, r *request) {
	c.touch(f.now)
	if len(c.queue) == 0 {
		c.stands = f.now
	}
	if int64(len(c.queue)) >= f.queueMax(c) && !f.cfg.Off {
		victim := r
		if !f.cfg.Without.NoNewest {
			victim = c.queue[0]
			c.queue = append(c.queue[1:], r)
		}
		f.shed(victim, "full")
		return
	}
	c.queue = append(c.queue, r)
}

// enqueueNested lets a request wait that is in this service for a second time or more.
func (f *Fence) enqueueNested(r *request) {
	if int64(len(f.nested)) >= f.cfg.Queue && !f.cfg.Off {
		f.shed(r, "full")
		return
	}
	f.nested = append(f.nested, r)
}

// queueMax is what could be served within the target, with room to spare; never less than minQueue.
func (f *Fence) queueMax(c *class) int64 {
	if c.hold == 0 {
		return f.cfg.Queue
	}
	most := c.limit
	if c.unknown {
		most = f.cfg.Workers
	}
	return min(f.cfg.Queue, max(minQueue, queueScale*most*c.target/c.hold))
}

func (f *Fence) unqueue(r *request) {
	r.class.touch(f.now)
	if r.depth > 0 {
		f.nested = slices.DeleteFunc(f.nested, func(x *request) bool { return x == r })
		return
	}
	r.class.queue = slices.DeleteFunc(r.class.queue, func(x *request) bool { return x == r })
}

func (f *Fence) shed(r *request, reason string) {
	r.class.counts.Shed++
	if r.waits {
		f.waiting--
		delete(f.requests, r.id)
	}
	f.emit(Event{Do: "shed", ID: r.id, Class: r.class.name, Reason: reason})
}

// hopeless says why a waiting request should not be served, or nothing. While nothing of the class is in flight nothing
// is predicted: one request always goes through, and shows what the downstream can do now. Nor is it while the queue has
// not stood for as long as the target: it may drain.
func (f *Fence) hopeless(r *request) string {
	left := r.deadline - f.now
	switch {
	case left <= 0:
		return "expired"
	case f.cfg.Without.NoShed || r.class.inFlight == 0 || f.now-r.arrived < f.cfg.Grace:
		return ""
	case f.now-r.class.stands >= r.class.target && left < min(f.margin(r.class), (r.deadline-r.arrived)/2):
		return "late"
	}
	return ""
}

// margin is the time that a request should have left when it gets a worker. A class of low rate hears of a change late,
// its group sooner.
func (f *Fence) margin(c *class) Time {
	hold := c.hold
	if c.group != nil {
		hold = max(hold, c.group.hold)
	}
	return hold * f.cfg.Gamma / 1000
}

// sweep sheds all that is hopeless in a queue.
func (f *Fence) sweep(c *class) {
	c.touch(f.now)
	c.queue = slices.DeleteFunc(c.queue, func(r *request) bool {
		reason := f.hopeless(r)
		if reason != "" {
			f.shed(r, reason)
		}
		return reason != ""
	})
}

// pump grants until nobody who waits may have a worker.
func (f *Fence) pump() {
	if f.cfg.Off {
		f.pumpPlain()
		return
	}
	if len(f.nested) > 0 {
		f.pumpNested()
	}
	for f.waiting > 0 {
		for _, c := range f.classes {
			if len(c.queue) > 0 {
				f.trim(c)
			}
		}
		c, lent := f.next()
		if c == nil {
			return
		}
		f.grant(f.pop(c), lent, "")
	}
}

// trim sheds from the head of a queue what is hopeless.
func (f *Fence) trim(c *class) {
	for len(c.queue) > 0 {
		reason := f.hopeless(c.queue[0])
		if reason == "" {
			return
		}
		c.touch(f.now)
		f.shed(c.popHead(), reason)
	}
}

// next finds the class that gets the next worker: those below their reserve come first, then those that may borrow;
// among equals the one with the least in flight for its weight, then the one whose last grant is longest ago: where there
// are more classes than they may have in flight, none of them is passed over for ever. A bucket that has its limit comes
// after all others: what is not known is bounded while somebody else wants the workers.
func (f *Fence) next() (*class, bool) {
	free := f.cfg.Workers - f.inFlight - f.deepest()
	if free <= 0 {
		return nil, false
	}
	var best *class
	bestLent, bestRank := false, 0
	for _, c := range f.classes {
		if len(c.queue) == 0 || f.halted(c) || c.full() && !c.unknown {
			continue
		}
		lent := !f.withinReserve(c)
		if lent && !f.mayBorrow(c, free) {
			continue
		}
		rank := c.rank(lent)
		if best == nil || rank < bestRank || rank == bestRank && c.before(best) {
			best, bestLent, bestRank = c, lent, rank
		}
	}
	return best, bestLent
}

func (c *class) rank(lent bool) int {
	switch {
	case c.full():
		return 2
	case lent:
		return 1
	}
	return 0
}

func (c *class) before(o *class) bool {
	mine, others := c.inFlight*o.weight, o.inFlight*c.weight
	return mine < others || mine == others && c.lastPush < o.lastPush
}

// pop takes from the end of a queue whose head has waited for long: under overload it is the newest that can still be
// in time, whereas in order of arrival all would be served just too late.
func (f *Fence) pop(c *class) *request {
	c.touch(f.now)
	last := len(c.queue) - 1
	if !f.cfg.Without.NoNewest && f.margin(c) >= c.target/2 && f.now-c.queue[0].arrived >= f.cfg.Grace {
		r := c.queue[last]
		if f.hopeless(r) == "" {
			c.queue = c.queue[:last]
			return r
		}
	}
	return c.popHead()
}

// popHead takes the first. An empty queue keeps its memory.
func (c *class) popHead() *request {
	r := c.queue[0]
	if len(c.queue) == 1 {
		c.queue = c.queue[:0]
	} else {
		c.queue = c.queue[1:]
	}
	return r
}

func (f *Fence) grant(r *request, lent bool, reason string) {
	c := r.class
	c.touch(f.now)
	if c.inFlight == 0 {
		c.lastTurn, c.turnHeard = f.now, f.heard
	}
	c.lastPush = f.now
	f.hold(c, 1)
	c.counts.Granted++
	r.granted = f.now
	if r.waits {
		r.waits = false
		f.waiting--
	}
	f.emit(Event{Do: "grant", ID: r.id, Class: c.name, Lent: lent, Reason: reason})
}

// deepest is the deepest re-entry of late; so many workers are kept from requests that enter for the first time.
func (f *Fence) deepest() int64 {
	for d := int64(MaxDepth); d > 0; d-- {
		if f.now-f.levels[d] < depthLife {
			return min(d, f.cfg.Workers-1)
		}
	}
	return 0
}

// pumpNested serves requests that are in this service for a second time or more: their callers hold workers here, so
// limits and reserves would have them wait for each other. A request of depth d leaves one worker for each deeper
// level, so the deepest can always run, end, and let the next run.
func (f *Fence) pumpNested() {
	f.nested = slices.DeleteFunc(f.nested, func(r *request) bool {
		if r.deadline <= f.now {
			f.shed(r, "expired")
			return true
		}
		return false
	})
	for len(f.nested) > 0 {
		deepest := 0
		for i, r := range f.nested {
			if r.depth > f.nested[deepest].depth {
				deepest = i
			}
		}
		r := f.nested[deepest]
		if f.cfg.Workers-f.inFlight-max(0, f.deepest()-r.depth) <= 0 {
			return
		}
		f.nested = slices.Delete(f.nested, deepest, deepest+1)
		f.grant(r, false, "")
	}
}

// pumpPlain is the plain pool: one queue, in order of arrival, nothing shed.
func (f *Fence) pumpPlain() {
	for f.cfg.Unbounded || f.inFlight < f.cfg.Workers {
		first := f.oldest()
		if first == nil {
			return
		}
		if first.depth > 0 {
			f.unqueue(first)
		} else {
			first.class.touch(f.now)
			first.class.popHead()
		}
		f.grant(first, false, "")
	}
}

// oldest is the request that came first of all that wait: one at the head of a queue, or a nested one.
func (f *Fence) oldest() (first *request) {
	for _, c := range f.classes {
		if len(c.queue) > 0 && (first == nil || c.queue[0].order < first.order) {
			first = c.queue[0]
		}
	}
	for _, r := range f.nested {
		if first == nil || r.order < first.order {
			first = r
		}
	}
	return first
}
