package core

import "fmt"

// Outcome says how a request ended.
type Outcome string

const (
	OK     Outcome = "ok"
	Fail   Outcome = "fail"   // the downstream refused, failed or timed out: nothing was achieved
	Cancel Outcome = "cancel" // the client went away: says nothing about the downstream
	Light  Outcome = "light"  // refused, not found, redirected; or it goes on without a worker: hardly any work
)

// Event is a decision.
type Event struct {
	Do     string `json:"do"` // grant, shed, limit, stop, class
	ID     int64  `json:"id,omitempty"`
	Class  string `json:"class,omitempty"`
	Lent   bool   `json:"lent,omitempty"` // beyond the class's reserve
	Reason string `json:"reason,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
}

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

// class holds what is known of the requests that use one set of downstream edges.
type class struct {
	index   int
	weight  int64
	unknown bool // one of the buckets for keys without a class
	learned bool // by its edges, not configured
	seen    Time // last arrival
	queue   []*request
	stands  Time // since then the queue has not been empty, if it is not
	reserve int64
	counts  Counts

	succeeded bool // something ended ok

	limited
	lending
	grouping
}

// Fence decides for one service. It is not safe for concurrent use. What a call returns stands until the next call.
type Fence struct {
	cfg     Config
	saidOff bool // by the configuration last, whoever switched since
	now     Time
	heard   Time // the time that has passed, but of each silence only the beginning
	buckets int64
	classes []*class // buckets first, then classes in the order in which they came
	groups  []*group // of classes that are late together
	keys    keyTable

	inFlight int64
	requests map[int64]*request // that wait or run
	waiting  int                // of them
	unused   []*request         // to be used again: at most as many as ran at once
	nested   []*request         // waiting, re-entered
	levels   [MaxDepth + 1]Time // when a request of this depth came last
	order    int64
	turns    int64 // requests that have ended, those that were cancelled left out

	windowStart Time
	stood       bool // in this window nothing was heard for half of one
	stoodBefore bool // in the one before
	events      []Event
}

// New starts a fence at a time.
func New(cfg Config, now Time) (*Fence, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &Fence{now: now, windowStart: now, buckets: cfg.Buckets, requests: map[int64]*request{}}
	f.keys = keyTable{learned: map[string]*candidate{}, footprints: map[string]int{}}
	f.cfg, f.saidOff = cfg, cfg.Off
	for d := range f.levels {
		f.levels[d] = never
	}
	for i := range cfg.Buckets {
		c := f.addClass(ClassConfig{Name: fmt.Sprintf("~u%d", i), Weight: defaultWeight, Target: cfg.Target})
		c.unknown = true
		c.limit = f.unknownLimit()
		c.seen = never
	}
	f.configure()
	return f, nil
}

const never Time = -1 << 60

func (f *Fence) addClass(cc ClassConfig) *class {
	c := &class{index: len(f.classes), weight: cc.Weight, seen: f.now, limited: limited{name: cc.Name, target: cc.Target, limit: f.cfg.Workers}}
	if cc.Limit > 0 {
		c.limit = min(cc.Limit, f.cfg.Workers)
	}
	c.hold = cc.Hold
	c.lastTurn, c.lastPush, c.stalledAt = f.now, never, never
	c.touched = f.now
	f.classes = append(f.classes, c)
	return c
}

// configure puts f.cfg in force; the classes of an earlier one stay, without keys.
func (f *Fence) configure() {
	f.keys.configured = map[string]int{}
	for _, cc := range f.cfg.Classes {
		c := f.named(cc.Name)
		if c == nil {
			c = f.addClass(cc)
		}
		c.weight = cc.Weight
		c.aim(cc.Target)
		for _, k := range cc.Keys {
			f.keys.configured[k] = c.index
		}
	}
	for _, l := range f.limits() {
		l.limit = min(l.limit, f.cfg.Workers)
	}
	for _, c := range f.classes {
		if c.unknown {
			c.limit = f.unknownLimit()
		}
		if c.unknown || c.learned {
			c.aim(f.cfg.Target)
		}
	}
	f.shareOut()
}

func (f *Fence) unknownLimit() int64 { return max(1, f.cfg.Workers/8) }

func (f *Fence) named(name string) *class {
	for _, c := range f.classes {
		if c.name == name {
			return c
		}
	}
	return nil
}

// Reload puts another configuration in force, under load. What is in flight stays in flight. The number of buckets is
// that of the start.
func (f *Fence) Reload(now Time, cfg Config) ([]Event, error) {
	f.advance(now)
	cfg, err := cfg.withDefaults()
	if err != nil {
		return f.take(), err
	}
	added := 0
	for _, cc := range cfg.Classes {
		if f.named(cc.Name) == nil {
			added++
		}
	}
	if len(f.classes)+added > int(f.buckets)+maxClasses {
		return f.take(), fmt.Errorf("%d classes are known and %d are new; at most %d fit", len(f.classes)-int(f.buckets), added, maxClasses)
	}
	f.emptySamples()
	for _, l := range f.limits() {
		if l.limit == f.cfg.Workers {
			l.limit = cfg.Workers
		}
	}
	if said := cfg.Off; said == f.saidOff {
		cfg.Off = f.cfg.Off
	} else {
		f.saidOff = said
	}
	f.cfg = cfg
	f.configure()
	f.pump()
	return f.take(), nil
}

// Switch turns the fence off, or on again. Off, the service has its plain pool back.
func (f *Fence) Switch(now Time, off bool) []Event {
	f.advance(now)
	f.cfg.Off = off
	f.emptySamples()
	f.pump()
	return f.take()
}

// Tick lets time pass. It is due every quarter of a window.
func (f *Fence) Tick(now Time) []Event {
	f.advance(now)
	if !f.cfg.Off {
		for _, c := range f.classes {
			f.sweep(c)
		}
	}
	f.pump()
	return f.take()
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
	if r.outcome != Fail {
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

// hold takes permits, or gives them back.
func (f *Fence) hold(c *class, permits int64) {
	c.inFlight += permits
	if c.group != nil {
		c.group.inFlight += permits
	}
	f.inFlight += permits
}

// limits are those of all classes, then those of groups.
func (f *Fence) limits() []*limited {
	all := make([]*limited, 0, len(f.classes)+len(f.groups))
	for _, c := range f.classes {
		all = append(all, &c.limited)
	}
	for _, g := range f.groups {
		all = append(all, &g.limited)
	}
	return all
}

func (f *Fence) emptySamples() {
	for _, c := range f.classes {
		c.touch(f.now)
	}
	for _, l := range f.limits() {
		l.sample = sample{}
	}
}

func (f *Fence) emit(e Event) { f.events = append(f.events, e) }

// take hands out the decisions since the last call.
func (f *Fence) take() []Event {
	e := f.events
	f.events = f.events[:0]
	return e
}

// advance brings the clock forward, and closes a window that is over. A clock that goes back stands still. Where nothing
// is heard for long, not even who ticks, it is the process that stands still.
func (f *Fence) advance(now Time) {
	silence := max(0, now-f.now)
	f.heard += min(silence, f.cfg.Stall/2)
	f.stood = f.stood || silence > f.cfg.Window/2
	f.now += silence
	if d := f.now - f.windowStart; d >= f.cfg.Window {
		f.closeWindow(d)
		f.windowStart = f.now
	}
}
