package core

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

// limited is what has a limit, and that limit's controller: a class, or a group of them.
type limited struct {
	name     string
	target   Time
	inFlight int64
	limit    int64
	reason   string // of the limit's last change

	window // the one that runs
	sample sample
	holds  holds // of the last requests
	hold   Time  // their median

	ring     []point
	samples  int64
	knee     int64 // where the last fit put it
	misfits  int64 // samples in a row that do not fit the ring
	quietFor int64 // windows since the limit last drifted
	coolTill Time  // samples that begin before it say nothing of the limit in force
	dip      bool  // this sample is taken below the limit
	lastDip  int64 // the value of samples then

	punctual   int64 // the part of the last answers that were in time, in thousandths, smoothed
	timely     bool  // three quarters were once: what never was in time is not slow, its target is too short
	late       int64 // samples in a row that were late,
	lateDone   int64 // their completions,
	lateTime   Time  // and how long they took
	cutFrom    int64 // the limit before a cut that the next sample judges; 0: none
	cutGood    int64 // goodput before that cut, as a point's
	noCutUntil Time  // the next cut, after one was undone
	cutPause   Time  // how long the wait was: doubled with each in a row
}

// aim gives a limit's controller another target, which it has yet to meet.
func (l *limited) aim(target Time) {
	if target != l.target {
		l.target, l.punctual, l.timely = target, 0, false
	}
}

// cap is the limit in force.
func (l *limited) cap() int64 {
	if l.dip {
		return max(1, (l.limit*7+9)/10)
	}
	return l.limit
}

// setLimit moves a limit. Sums that depend on it have to be up to now.
func (f *Fence) setLimit(l *limited, limit int64, reason string) {
	limit = max(min(leastLimit, f.cfg.Workers), min(limit, f.cfg.Workers))
	if limit == l.limit {
		return
	}
	l.limit = limit
	l.reason = reason
	f.emit(Event{Do: "limit", Class: l.name, Limit: limit, Reason: reason})
}

// learn adds a window to the sample, and concludes when there is enough.
func (f *Fence) learn(l *limited, w window, length Time) {
	if f.cfg.Off || f.cfg.Without.NoLearn {
		return
	}
	s := &l.sample
	s.area += w.area
	s.bound += w.bound
	s.done += w.done
	s.good += w.good
	s.length += length
	s.windows++
	f.drift(l, w, length)
	if s.done < sampleDone && s.windows < sampleWindows {
		return
	}
	full := *s
	begun := f.now - s.length
	l.sample = sample{}
	if begun >= l.coolTill {
		f.conclude(l, full)
	}
}

// drift lets a limit that nobody needs grow: what demand bounds says nothing of the knee, so nothing is held against it.
func (f *Fence) drift(l *limited, w window, length Time) {
	if w.bound*10 >= length || l.limit == f.cfg.Workers {
		l.quietFor = 0
		return
	}
	if w.area > 0 && w.done == 0 {
		return // what has yet to come back says nothing
	}
	l.quietFor++
	if l.quietFor == 5 {
		l.quietFor = 0
		f.setLimit(l, l.limit+1, "unused")
	}
}

// conclude draws what follows from a sample.
func (f *Fence) conclude(l *limited, s sample) {
	wasDip := l.dip
	l.dip = false
	if s.done < sampleDone {
		return // a class of low rate keeps what it has
	}
	p := point{n: s.area * 1000 / s.length, good: s.good * 1000 * f.cfg.Window / s.length, done: s.done * 1000 * f.cfg.Window / s.length}
	p.full = s.bound*10 > s.length*3
	l.samples++
	f.regime(l, p)
	if p.n >= 500 {
		if len(l.ring) == ringSize {
			l.ring = append(l.ring[:0], l.ring[1:]...)
		}
		l.ring = append(l.ring, p)
	}
	switch {
	case f.tryCut(l, p):
	case f.cut(l, s):
	case !p.full || wasDip:
	case f.fit(l):
	case s.good*10 >= s.done*9 && f.grow(l, p):
	default:
		f.excite(l)
	}
}

// regime forgets the ring when three samples in a row hold workers twice as long, or half as long, as it tells.
func (f *Fence) regime(l *limited, p point) {
	n, done := int64(0), int64(0)
	for _, q := range l.ring {
		n += q.n
		done += q.done
	}
	if len(l.ring) < 4 {
		l.misfits = 0
		return
	}
	// Beyond the knee requests take longer in proportion to n, which is no change.
	n0 := n / int64(len(l.ring))
	old, new := n*1000/done, p.n*1000/max(1, p.done)
	high, low := max(old, old*p.n/n0), min(old, old*p.n/n0)
	if new >= 2*high || 2*new <= low {
		l.misfits++
	} else {
		l.misfits = 0
	}
	if l.misfits == 3 {
		l.misfits = 0
		l.ring = l.ring[:0]
	}
}

// cut shrinks the limit to what the downstream serves in half of the target, when two samples in a row came back too
// late, or all of one. Where the limit is there already, four in a row make it an eighth smaller.
func (f *Fence) cut(l *limited, s sample) bool {
	if !l.timely || s.good*4 >= s.done*3 || f.now < l.noCutUntil {
		l.late, l.lateDone, l.lateTime = 0, 0, 0
		return false
	}
	l.late++
	l.lateDone += s.done
	l.lateTime += s.length
	if l.late == 1 && s.good > 0 {
		return false
	}
	to := max(leastLimit, (l.lateDone*(l.target/2)+l.lateTime-1)/l.lateTime)
	if to >= l.limit && l.late >= 4 {
		to = max(leastLimit, l.limit*7/8)
	}
	if to >= l.limit {
		return false
	}
	l.late, l.lateDone, l.lateTime = 0, 0, 0
	l.cutFrom, l.cutGood = l.limit, s.good*1000*f.cfg.Window/s.length
	f.setLimit(l, to, "late")
	l.coolTill = f.now + s.area/s.done
	return true
}

// tryCut judges a cut by the first sample after it: a limit that costs goodput goes back.
func (f *Fence) tryCut(l *limited, p point) bool {
	if l.cutFrom == 0 {
		return false
	}
	from := l.cutFrom
	l.cutFrom = 0
	if p.good*10 >= l.cutGood*9 {
		l.cutPause = 0
		return false
	}
	l.cutPause = min(max(1000*ms, 2*l.cutPause), 16_000*ms)
	l.noCutUntil = f.now + l.cutPause
	f.setLimit(l, (l.limit+from+1)/2, "undo")
	return true
}

// fit moves the limit towards the smallest concurrency on the plateau.
func (f *Fence) fit(l *limited) bool {
	full := l.full()
	if l.samples%fitEvery != 0 || len(full) < ringEnough || !spread(full) {
		return false
	}
	if falling(full) {
		f.setLimit(l, l.limit*4/5, "thrash")
		return true
	}
	k, rising := knee(full)
	l.knee = k
	to := k + max(1, k/4)
	if rising || to >= l.limit {
		return false
	}
	f.setLimit(l, max(to, l.limit-max(1, l.limit/4)), "knee")
	return true
}

// full are the points at which the downstream was asked for all that the limit allows.
func (l *limited) full() []point {
	return slices.DeleteFunc(slices.Clone(l.ring), func(p point) bool { return !p.full })
}

// grow raises a limit that binds while requests hold their workers no longer than they do at lower concurrency.
func (f *Fence) grow(l *limited, p point) bool {
	n, done := int64(0), int64(0)
	for _, q := range l.ring {
		if q.n*4 <= p.n*3 {
			n += q.n
			done += q.done
		}
	}
	if done == 0 || p.n*done*5 > n*p.done*6 {
		return false
	}
	f.setLimit(l, l.limit+max(1, l.limit/2), "room")
	return true
}

// excite makes a difference to learn from: a dip now and then, and small steps up.
func (f *Fence) excite(l *limited) {
	if f.cfg.Without.NoExcite {
		return
	}
	if len(l.full()) >= 8 && l.samples-l.lastDip >= 16 && !spread(l.full()) {
		l.dip = true
		l.lastDip = l.samples
		return
	}
	if l.samples%4 == 0 {
		f.setLimit(l, l.limit+1, "probe")
	}
}
