package core

import "slices"

const (
	holdRing      = 31
	maxHold       = 600_000 * ms
	sampleDone    = 16 // a sample is over after so many completions,
	sampleWindows = 10 // or so many windows
)

// window is what one class did since the last window began.
type window struct {
	touched  Time
	area     int64 // nanoseconds of workers held
	queued   Time  // during which something waited
	bound    Time  // during which something waited for the limit
	arrivals int64
	done     int64
	good     int64
	light    int64 // that ended without being counted in done: hardly any work
}

// sample is the sum of windows, until there is enough to conclude from.
type sample struct {
	area, bound, done, good int64
	length                  Time
	windows                 int64
}

// touch brings the sums up to now, its group's too; call it before anything that they depend on changes.
func (c *class) touch(now Time) {
	if c.group != nil {
		c.group.touch(now)
	}
	c.limited.touch(now, len(c.queue) > 0)
}

// touch brings the sums up to now; something has waited since they were, or nothing has.
func (l *limited) touch(now Time, waited bool) {
	d := now - l.touched
	l.touched = now
	l.area += l.inFlight * d
	if waited {
		l.queued += d
		if l.inFlight >= l.cap() {
			l.bound += d
		}
	}
}

// finished counts a completion.
func (c *class) finished(now Time, r *request) {
	switch {
	case r.outcome == Fail:
		c.counts.Failed++
	case now > r.deadline:
		c.counts.Missed++
	}
	if r.outcome == OK && !c.succeeded {
		c.succeeded = true
		c.holds = holds{}
	}
	c.limited.finished(now, r)
	if c.group != nil {
		c.group.finished(now, r)
	}
}

// finished counts a completion in the window.
func (l *limited) finished(now Time, r *request) {
	l.done++
	good := r.outcome != Fail && now <= r.deadline
	l.answered(good)
	if good {
		l.good++
	}
	if r.outcome == Fail {
		return
	}
	l.learnHold(min(now-r.granted, maxHold))
}

// answered notes whether an answer was in time.
func (l *limited) answered(good bool) {
	now := int64(0)
	if good {
		now = 1000
	}
	l.punctual += (now - l.punctual) / 16
	l.timely = l.timely || l.punctual >= 750
}

// learnHold keeps the lower median of how long the last requests held a worker.
func (l *limited) learnHold(d Time) {
	l.holds.add(d)
	l.hold = l.holds.median()
}

// holds are the last holdRing times, in the order of their size, too: they are not sorted anew with each.
type holds struct {
	ring   [holdRing]Time
	next   int // of the ring, the oldest once it is full
	sorted []Time
}

func (h *holds) add(d Time) {
	i := len(h.sorted)
	if i == holdRing { // d takes the place of the oldest
		i, _ = slices.BinarySearch(h.sorted, h.ring[h.next])
	} else {
		h.sorted = append(h.sorted, d)
	}
	h.ring[h.next] = d
	h.next = (h.next + 1) % holdRing
	for ; i+1 < len(h.sorted) && h.sorted[i+1] < d; i++ {
		h.sorted[i] = h.sorted[i+1]
	}
	for ; i > 0 && h.sorted[i-1] > d; i-- {
		h.sorted[i] = h.sorted[i-1]
	}
	h.sorted[i] = d
}

// median is the lower one.
func (h *holds) median() Time { return h.sorted[(len(h.sorted)-1)/2] }

// closeWindow ends a window. Where the process, or whoever ticks, stood still, what was measured is nobody's fault, and is
// dropped; and so is what comes in the next window, when all arrives at once that was sent meanwhile.
func (f *Fence) closeWindow(length Time) {
	valid := !f.stood && !f.stoodBefore
	f.stood, f.stoodBefore = false, f.stood
	for _, c := range f.classes {
		c.touch(f.now)
		w := c.window
		c.window = window{touched: f.now}
		if !valid {
			c.usual.drop()
			c.others.value = c.others.before
			c.sample = sample{}
			continue
		}
		f.keepPeaks(c, w, length)
		if !c.unknown {
			f.learn(&c.limited, w, length)
		}
	}
	f.closeGroups(length, valid)
	f.shareOut()
	if valid && !f.cfg.Off {
		f.panicRule()
	}
}

// keepPeaks takes the window's peaks into the memory. The class's own counts only if it got what it asked for, and gave
// back about as much as it took: else it is the wait that made the demand.
func (f *Fence) keepPeaks(c *class, w window, length Time) {
	c.others.before = c.others.value
	if w.queued*10 < length && (w.done+w.light)*4+8 >= w.arrivals*3 {
		c.usual.keep()
		c.alarmed = false
	} else {
		c.usual.drop()
	}
	c.turnNow = w.done * 1000
	c.turn += (w.done*1000 - c.turn) / 4
	c.level += (w.area*1000/length - c.level) / 4
}
