package core

import "slices"

const (
	activeFor   = 60_000 * ms // a class that was silent for longer owns nothing
	peakBlocks  = 8           // of peakWindows windows each: how long demand is remembered
	peakWindows = 4
	othersPart  = 990        // of a thousand arrivals find the others in need of no more than is kept for them
	barFirst    = 1_000 * ms // how long a culprit may not borrow, doubled each time it is one again
	barLongest  = 8_000 * ms
	barMemory   = 16_000 * ms
	aloneTurns  = 2 // so many requests of others end while a class is stalled: it is its downstream that stands still
)

// peak is the maximum over the last windows that were kept.
type peak struct {
	current int64
	kept    int64
	blocks  [peakBlocks]int64 // the newest first
	value   int64             // the largest block
}

func (p *peak) note(v int64) { p.current = max(p.current, v) }

// keep takes the window that ends into the memory.
func (p *peak) keep() {
	if p.kept%peakWindows == 0 {
		copy(p.blocks[1:], p.blocks[:peakBlocks-1])
		p.blocks[0] = 0
	}
	p.kept++
	p.blocks[0] = max(p.blocks[0], p.current)
	p.current = 0
	p.value = slices.Max(p.blocks[:])
}

func (p *peak) drop() { p.current = 0 }

// quantile follows a value that othersPart of a thousand stay below: a step up for what lies above it, a small step down
// for what does not.
type quantile struct {
	value  int64 // in thousandths
	before int64 // when the window began
}

func (q *quantile) note(v int64) {
	step := max(100, q.value/32)
	if v*1000 > q.value {
		q.value += step * othersPart / 1000
	} else {
		q.value = max(0, q.value-max(1, step*(1000-othersPart)/1000))
	}
}

// lending is what a class's reserve, and what others keep free for it, follow from.
type lending struct {
	usual   peak     // of the class's own demand, in windows in which it got what it asked for
	others  quantile // of what all other classes could use at the same time
	turn    int64    // completions a window, in thousandths, smoothed
	turnNow int64    // the same, of the last window alone
	level   int64    // workers held, in thousandths, smoothed

	alarmed    bool  // stalled, while others were answered, since it last got what it asked for
	stalledAt  Time  // lastTurn when it stalled last
	stallTurns int64 // the fence's turns then
	lastPush   Time  // last grant
	lastTurn   Time  // last completion, or the grant before which nothing was in flight
	turnHeard  Time  // how much the fence had heard then
	barUntil   Time  // may not borrow until then
	barFor     Time
}

// arrived notes that a class is alive.
func (f *Fence) arrived(c *class) {
	woke := f.now-c.seen >= activeFor
	c.seen = f.now
	c.arrivals++
	if woke {
		f.shareOut()
	}
}

func (f *Fence) active(c *class) bool { return c.inFlight > 0 || f.now-c.seen < activeFor }

// shareOut divides the workers among the active classes, by weight. All buckets together count as one class. Nobody has all
// workers by right: what is asked for next would find none (spare).
func (f *Fence) shareOut() {
	sum, bucket := int64(0), false
	for _, c := range f.classes {
		switch {
		case !f.active(c):
		case c.unknown:
			bucket = true
		default:
			sum += c.weight
		}
	}
	if bucket {
		sum += defaultWeight
	}
	for _, c := range f.classes {
		if sum > 0 {
			c.reserve = max(1, min(f.cfg.Workers*c.weight/sum, f.cfg.Workers-1))
		}
		if c.unknown {
			c.reserve = 1
		}
	}
}

// withinReserve says whether the next worker of a class is its own. Buckets have one each, as long as not too many do. What
// a bucket has borrowed is not counted: it would be held against the others when its downstream hangs.
func (f *Fence) withinReserve(c *class) bool {
	if c.inFlight >= c.reserve || !c.unknown {
		return c.inFlight < c.reserve
	}
	busy := int64(0)
	for _, o := range f.classes[:f.buckets] {
		if o.inFlight > 0 {
			busy++
		}
	}
	return busy < f.bucketsByRight()
}

// bucketsByRight: an eighth of the workers, but so many that one bucket whose downstream hangs is not all of them.
func (f *Fence) bucketsByRight() int64 {
	if f.cfg.Workers < 4 {
		return 1
	}
	return max(2, f.unknownLimit())
}

// entitled bounds what others keep free for a class: its reserve, or what it usually needs if that is more.
func (c *class) entitled() int64 { return min(c.limit, max(c.reserve, c.usual.value)) }

func (c *class) demand() int64 { return c.inFlight + int64(len(c.queue)) }

// wants is how many workers others leave to a class now: as many as it has requests, if it is entitled to them; but no more
// than do what has come within a 256th of its target, or a few quick requests at once would take half of a pool.
func (c *class) wants() int64 {
	d := c.demand()
	if d == 0 {
		return 0 // as most classes at most times, and this is asked of each for each request
	}
	if c.hold > 0 && c.hold*256 < c.target { // else it bounds nothing, and a division costs
		d = min(d, (d*c.hold*256+c.target-1)/c.target)
	}
	return min(d, c.entitled())
}

// noteDemand remembers how much was wanted at once, after an arrival in class c.
func (f *Fence) noteDemand(c *class) {
	c.usual.note(c.demand())
	sum := int64(0)
	for _, o := range f.classes {
		sum += o.wants()
	}
	for _, o := range f.classes {
		if o != c {
			o.others.note(min(sum-o.wants(), f.cfg.Workers))
		}
	}
}

// mayBorrow says whether a class that has its reserve may have one of the free workers on top.
func (f *Fence) mayBorrow(c *class, free int64) bool {
	if f.cfg.Without.NoLend || f.now < c.barUntil || f.stalled(c) {
		return false
	}
	if c.unknown && c.inFlight == 0 {
		return free > f.keptForClasses()
	}
	keep, held, level, turn, alone := int64(0), int64(0), int64(0), int64(0), true
	for _, o := range f.classes {
		if o == c {
			continue
		}
		alone = alone && !f.active(o)
		keep += o.wants()
		held += min(o.inFlight, o.wants())
		level += o.level
		turn += o.turn
	}
	if alone {
		return free > f.spare(c)
	}
	if !f.cfg.Without.NoProtect {
		keep = max(keep, (c.others.value+500)/1000)
	}
	// What c gives back while the others' requests would wait for as long as they take anyhow. Whoever stood still
	// while others were answered gave back nothing that they could have used, and may do so again at any moment.
	back := int64(0)
	if turn > 0 && !c.alarmed {
		back = c.turnNow * level / (1000 * turn)
	}
	return free > max(1, f.spare(c), keep-held-back)
}

// keptForClasses is how many workers a bucket leaves of which nothing is in flight. It may be that of a quick path beside
// others that hang, so it leaves none for other buckets; for classes what they want now, and one while there are any.
func (f *Fence) keptForClasses() int64 {
	one, want := int64(0), int64(0)
	for _, o := range f.classes[f.buckets:] {
		if f.active(o) {
			one = 1
		}
		want += max(0, o.wants()-o.inFlight)
	}
	return max(one, want)
}

// spare is how many of the free workers a class leaves, whoever else is there: none, if its requests take what they should.
// What is slow, or has yet to come back for the first time, may hold what it takes for as long as a client waits.
func (f *Fence) spare(c *class) int64 {
	switch {
	case c.hold > 0 && c.hold <= c.target:
		return 0
	case c.unknown:
		return max(f.bucketsByRight(), f.cfg.Workers/4)
	}
	return 1
}

// stalled: for eight times as long as it should take, nothing of the class came back. What goes to its downstream now
// only waits there, where it holds a worker; so it waits here, and one goes through each time as long again has passed.
func (f *Fence) stalled(c *class) bool {
	if f.cfg.Without.NoPanic || c.inFlight == 0 {
		return false
	}
	one := c.hold // what one request takes: in a burst, nothing comes back before
	if one == 0 {
		one = c.target
	}
	usual := 8 * one
	if c.turn > 0 {
		usual = 8 * c.level * f.cfg.Window / c.turn
	}
	return f.heard-c.turnHeard >= max(usual/c.inFlight, one+f.cfg.Stall)
}

// halted says whether a stalled class has to wait. When the downstream answers again, what has queued would go to it all
// at once: so the limit falls to twice what the class usually needs, and by an eighth each time it stalls again before
// it got what it asked for, down to five eighths of that.
func (f *Fence) halted(c *class) bool {
	if !f.stalled(c) {
		return false
	}
	if c.stalledAt != c.lastTurn && !c.unknown && !f.cfg.Without.NoLearn {
		c.stalledAt, c.stallTurns = c.lastTurn, f.turns
		to := 2*c.usual.value + 4
		if c.alarmed {
			to = max(to*5/8, c.limit*7/8)
		}
		c.touch(f.now)
		f.setLimit(&c.limited, min(c.limit, to), "stall")
		f.mistrust(c)
		f.contain(c.group)
	}
	return f.now-c.lastPush < c.target/4
}

// turned: something of a class has come back. If it had stalled, and others were answered meanwhile, it was its own
// downstream that stood still.
func (f *Fence) turned(c *class) {
	if c.stalledAt == c.lastTurn && f.turns-c.stallTurns >= aloneTurns {
		c.alarmed = true
	}
	c.lastTurn, c.turnHeard = f.now, f.heard
}

// unmet: a class has waited for what is its own. Where its requests in flight are not answered either, it is not workers
// that it waits for.
func (f *Fence) unmet(c *class) bool {
	if len(c.queue) == 0 || c.full() || !f.withinReserve(c) {
		return false
	}
	since := c.queue[0].arrived
	return f.now-since >= f.cfg.Panic && (c.inFlight == 0 || c.lastTurn > since)
}

// panicRule bars the class that is furthest beyond its reserve from borrowing while another's is unmet.
func (f *Fence) panicRule() {
	if f.cfg.Without.NoPanic {
		return
	}
	if !slices.ContainsFunc(f.classes, f.unmet) {
		return
	}
	var culprit *class
	for _, c := range f.classes {
		if c.inFlight > c.reserve && (culprit == nil || c.inFlight-c.reserve > culprit.inFlight-culprit.reserve) {
			culprit = c
		}
	}
	if culprit == nil || f.now < culprit.barUntil {
		return
	}
	if f.now-culprit.barUntil < barMemory && culprit.barFor > 0 {
		culprit.barFor = min(2*culprit.barFor, barLongest)
	} else {
		culprit.barFor = barFirst
	}
	culprit.barUntil = f.now + culprit.barFor
	f.emit(Event{Do: "stop", Class: culprit.name, Reason: "panic"})
}
