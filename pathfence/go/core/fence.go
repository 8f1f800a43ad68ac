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
	if named := len(f.classes) - int(f.buckets) - f.learnedClasses(); named+added > maxNamed {
		return f.take(), fmt.Errorf("%d classes were named since the start and %d are new; at most %d fit: take names that were there, or restart the service", named, added, maxNamed)
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
