package core

type request struct {
	id       int64
	order    int64
	key      string
	class    *class
	arrived  Time
	deadline Time
	expires  Time // the target, where the deadline is one of a peer without trust; else 0
	depth    int64
	granted  Time
	sharers  int64 // requests that run on this one's permit, itself included
	done     bool  // itself has ended, sharers have not
	parent   *request
	outcome  Outcome
	waits    bool // for a permit; else it runs
}

// Request is what is known of a request when it arrives.
type Request struct {
	ID       int64
	Key      string
	Deadline Time  // absolute; 0: the class's target
	Shortens bool  // the deadline may only shorten the target, as that of a peer without trust
	Depth    int64 // how often its chain of calls has been in this service before
	Parent   int64 // the request in flight that it is a part of, on the same pool; 0: none
}

// Arrive offers a request.
func (f *Fence) Arrive(now Time, in Request) []Event {
	f.advance(now)
	if f.requests[in.ID] != nil {
		return f.take()
	}
	if f.Runs(in.Parent) {
		f.inherit(in, f.requests[in.Parent])
		return f.take()
	}
	r := f.newRequest(in.ID, in.Key)
	c := r.class
	r.depth = max(in.Depth, 0)
	if in.Shortens && in.Deadline != 0 {
		r.expires = r.deadline
		r.deadline = min(in.Deadline, r.expires)
	} else if in.Deadline != 0 {
		r.deadline = in.Deadline
	}
	f.arrived(c)
	if r.depth > MaxDepth {
		f.shed(r, "depth")
		return f.take()
	}
	r.waits = true
	f.requests[r.id] = r
	f.waiting++
	if r.depth > 0 {
		f.levels[r.depth] = f.now
		f.enqueueNested(r)
	} else {
		f.enqueue(c, r)
	}
	f.noteDemand(c)
	f.pump()
	return f.take()
}

// inherit runs a part of a request on that request's permit.
func (f *Fence) inherit(in Request, p *request) {
	for p.parent != nil {
		p = p.parent
	}
	p.sharers++
	f.requests[in.ID] = &request{id: in.ID, class: p.class, parent: p, sharers: 1}
	f.emit(Event{Do: "grant", ID: in.ID, Class: p.class.name, Reason: "inherited"})
}

// Resume takes a worker again for a request that went on without one. It is on a thread already, so it waits for nothing.
func (f *Fence) Resume(now Time, id int64, key string) []Event {
	f.advance(now)
	if f.requests[id] != nil {
		return f.take()
	}
	r := f.newRequest(id, key)
	f.requests[id] = r
	f.grant(r, false, "resumed")
	return f.take()
}

// newRequest is one that arrives now, with its class's target.
func (f *Fence) newRequest(id int64, key string) *request {
	var r *request
	if last := len(f.unused) - 1; last >= 0 {
		r, f.unused = f.unused[last], f.unused[:last]
	} else {
		r = new(request)
	}
	c := f.classOf(key)
	f.order++
	*r = request{id: id, order: f.order, key: key, class: c, arrived: f.now, deadline: f.now + c.target, sharers: 1}
	return r
}

// ClassOf is the name of the class of a request that waits or runs; "": there is no such request.
func (f *Fence) ClassOf(id int64) string {
	if r := f.requests[id]; r != nil {
		return r.class.name
	}
	return ""
}

// Done ends a request, waiting or in flight.
func (f *Fence) Done(now Time, id int64, outcome Outcome) []Event {
	f.advance(now)
	r := f.requests[id]
	if r == nil || r.done {
		return f.take()
	}
	if r.waits {
		f.unqueue(r)
		f.waiting--
		delete(f.requests, id)
		f.pump()
		return f.take()
	}
	owner := r
	if r.parent != nil {
		owner = r.parent
		delete(f.requests, id)
	} else {
		r.done, r.outcome = true, outcome
	}
	owner.sharers--
	if owner.sharers == 0 {
		delete(f.requests, owner.id)
		f.release(owner)
		f.unused = append(f.unused, owner)
		f.pump()
	}
	return f.take()
}

// release gives a permit back.
func (f *Fence) release(r *request) {
	c := r.class
	c.touch(f.now)
	f.hold(c, -1)
	f.turned(c)
	if r.outcome == Cancel && f.now > max(r.deadline, r.expires) {
		c.counts.Missed++ // its client has waited in vain
	}
	if r.outcome == Cancel || f.hurried(r) {
		return
	}
	f.turns++
	// What is over in less than half of the usual time without success was no work like the others'.
	if r.outcome == Light && 2*(f.now-r.granted) < c.hold {
		c.light++
	} else {
		c.finished(f.now, r)
		f.judge(c, r.outcome != Fail && f.now <= r.deadline)
	}
	if r.outcome != Fail && !c.learned { // of a learned class are learned keys only
		f.learnKey(r.key)
	}
}

// hurried says whether a request has ended as it did because a peer without trust has set it a time that was too short: late,
// or failed, as what it calls does when the time is over. Such a peer could make a path look slow.
func (f *Fence) hurried(r *request) bool {
	if f.now > r.expires {
		return false
	}
	over := f.now > r.deadline
	return r.outcome == OK && over || r.outcome == Fail && (over || 8*(r.deadline-f.now) <= r.deadline-r.arrived)
}
