package model

import "slices"

const (
	ringSize   = 40
	ringEnough = 15
	fitEvery   = 8
	leastLimit = 2
)

// point is a sample as the limit's controller sees it.
type point struct {
	n    int64 // workers held on average, in thousandths
	good int64 // completions in time a window, in thousandths
	done int64 // completions a window, in thousandths
	full bool  // the limit bound, or a dip did: what is seen is the downstream's, not the demand's
}

// control is the limit's controller of one class.
type control struct {
	window // the one that runs
	sample sample
	holds  []Time // of the last requests
	hold   Time   // their median

	ring     []point
	samples  int64
	knee     int64 // where the last fit put it
	odd      int64 // samples in a row that do not fit the ring
	quietFor int64 // windows since the limit last drifted
	coolTill Time  // samples that begin before it say nothing of the limit in force
	dip      bool  // this sample is taken below the limit
	lastDip  int64

	late     int64 // samples in a row that were late,
	lateDone int64 // their completions,
	lateTime Time  // and how long they took
	cutFrom  int64 // the limit before a cut that is on trial
	cutGood  int64
	noCut    Time
	cutPause Time
}

// cap is the limit in force.
func (c *class) cap() int64 {
	if c.dip {
		return max(1, (c.limit*7+9)/10)
	}
	return c.limit
}

func (f *Fence) setLimit(c *class, limit int64, reason string) {
	limit = max(min(leastLimit, f.cfg.Workers), min(limit, f.cfg.Workers))
	if limit == c.limit {
		return
	}
	c.touch(f.now)
	c.limit = limit
	c.counts.Reason = reason
	f.emit(Event{Do: "limit", Class: c.name, Limit: limit, Reason: reason})
}

// learn adds a window to the sample, and concludes when there is enough.
func (f *Fence) learn(c *class, w window, length Time) {
	if c.unknown || f.cfg.Without.NoLearn {
		return
	}
	s := &c.sample
	s.area += w.area
	s.limited += w.limited
	s.done += w.done
	s.good += w.good
	s.length += length
	s.windows++
	f.drift(c, w, length)
	if s.done < sampleDone && s.windows < sampleWindows {
		return
	}
	full := *s
	begun := f.now - s.length
	c.sample = sample{}
	if begun >= c.coolTill {
		f.conclude(c, full)
	}
}

// drift lets a limit that nobody needs grow: what demand bounds says nothing of the knee, so nothing is held against it.
func (f *Fence) drift(c *class, w window, length Time) {
	if w.limited*10 >= length || c.limit == f.cfg.Workers {
		c.quietFor = 0
		return
	}
	c.quietFor++
	if c.quietFor == 5 {
		c.quietFor = 0
		f.setLimit(c, c.limit+1, "unused")
	}
}

// conclude draws what follows from a sample.
func (f *Fence) conclude(c *class, s sample) {
	wasDip := c.dip
	c.touch(f.now)
	c.dip = false
	if s.done < sampleDone {
		return // a class of low rate keeps what it has
	}
	p := point{n: s.area * 1000 / s.length, good: s.good * 1000 * f.cfg.Window / s.length, done: s.done * 1000 * f.cfg.Window / s.length}
	limited := s.limited*10 > s.length*3
	p.full = limited
	c.samples++
	f.regime(c, p)
	if p.n >= 500 {
		if len(c.ring) == ringSize {
			c.ring = append(c.ring[:0], c.ring[1:]...)
		}
		c.ring = append(c.ring, p)
	}
	switch {
	case f.tryCut(c, p):
	case f.cut(c, s):
	case !limited || wasDip:
	case f.fit(c):
	case s.good*10 >= s.done*9 && f.grow(c, p):
	default:
		f.excite(c)
	}
}

// regime forgets the ring when three samples in a row hold workers twice as long, or half as long, as it tells.
func (f *Fence) regime(c *class, p point) {
	n, done := int64(0), int64(0)
	for _, q := range c.ring {
		n += q.n
		done += q.done
	}
	if len(c.ring) < 4 {
		c.odd = 0
		return
	}
	// Beyond the knee requests take longer in proportion to n, which is no change.
	n0 := n / int64(len(c.ring))
	old, new := n*1000/done, p.n*1000/max(1, p.done)
	high, low := max(old, old*p.n/n0), min(old, old*p.n/n0)
	if new >= 2*high || 2*new <= low {
		c.odd++
	} else {
		c.odd = 0
	}
	if c.odd == 3 {
		c.odd = 0
		c.ring = c.ring[:0]
	}
}

// cut shrinks the limit to what the downstream serves in half of the target, when two samples in a row came back too
// late, or all of one. Where the limit is there already, four in a row make it an eighth smaller.
func (f *Fence) cut(c *class, s sample) bool {
	if s.good*4 >= s.done*3 || f.now < c.noCut {
		c.late, c.lateDone, c.lateTime = 0, 0, 0
		return false
	}
	c.late++
	c.lateDone += s.done
	c.lateTime += s.length
	if c.late == 1 && s.good > 0 {
		return false
	}
	to := max(leastLimit, (c.lateDone*(c.target/2)+c.lateTime-1)/c.lateTime)
	if to >= c.limit && c.late >= 4 {
		to = max(leastLimit, c.limit*7/8)
	}
	if to >= c.limit {
		return false
	}
	c.late, c.lateDone, c.lateTime = 0, 0, 0
	c.cutFrom, c.cutGood = c.limit, s.good*1000*f.cfg.Window/s.length
	f.setLimit(c, to, "late")
	c.coolTill = f.now + s.area/s.done
	return true
}

// tryCut judges a cut by the first sample after it: a limit that costs goodput goes back.
func (f *Fence) tryCut(c *class, p point) bool {
	if c.cutFrom == 0 {
		return false
	}
	from := c.cutFrom
	c.cutFrom = 0
	if p.good*10 >= c.cutGood*9 {
		c.cutPause = 0
		return false
	}
	c.cutPause = min(max(1000*ms, 2*c.cutPause), 16_000*ms)
	c.noCut = f.now + c.cutPause
	f.setLimit(c, (c.limit+from+1)/2, "undo")
	return true
}

// fit moves the limit towards the smallest concurrency on the plateau.
func (f *Fence) fit(c *class) bool {
	full := c.full()
	if c.samples%fitEvery != 0 || len(full) < ringEnough || !spread(full) {
		return false
	}
	if falling(full) {
		f.setLimit(c, c.limit*4/5, "thrash")
		return true
	}
	k, rising := knee(full)
	c.knee = k
	to := k + max(1, k/4)
	if rising || to >= c.limit {
		return false
	}
	f.setLimit(c, max(to, c.limit-max(1, c.limit/4)), "knee")
	return true
}

// full are the points at which the downstream was asked for all that the limit allows.
func (c *class) full() []point {
	return slices.DeleteFunc(slices.Clone(c.ring), func(p point) bool { return !p.full })
}

// grow raises a limit that binds while requests hold their workers no longer than they do at lower concurrency.
func (f *Fence) grow(c *class, p point) bool {
	n, done := int64(0), int64(0)
	for _, q := range c.ring {
		if q.n*4 <= p.n*3 {
			n += q.n
			done += q.done
		}
	}
	if done == 0 || p.n*done*5 > n*p.done*6 {
		return false
	}
	f.setLimit(c, c.limit+max(1, c.limit/2), "room")
	return true
}

// excite makes a difference to learn from: a dip now and then, and small steps up.
func (f *Fence) excite(c *class) {
	if f.cfg.Without.NoExcite {
		return
	}
	if len(c.full()) >= 8 && c.samples-c.lastDip >= 16 && !spread(c.full()) {
		c.touch(f.now)
		c.dip = true
		c.lastDip = c.samples
		return
	}
	if c.samples%4 == 0 {
		f.setLimit(c, c.limit+1, "probe")
	}
}
