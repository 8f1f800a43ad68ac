package run

import (
	"time"

	"temper.dev/temper/lab/plan"
)

// Guest seconds that a ladder spends outside its windows, about: until the first is measured
// (the kernel, calibration), and around each (starting spinners, settling, reading figures).
const (
	bootSeconds   = 10
	aroundSeconds = 1
)

// estimate tells how much longer a ladder takes: by the machine's usual speed at first, then by
// how long its windows took.
type estimate struct {
	started, measuring time.Time
	before, window     time.Duration // expected, real
	windows            int
	slow               float64 // how often what came before the windows took its time, once that is known; 0: not yet
}

// newEstimate is for a machine that takes factor real seconds for one of its own.
func newEstimate(factor float64, p plan.Plan) *estimate {
	real := func(guest float64) time.Duration {
		return time.Duration(guest * factor * float64(time.Second))
	}
	return &estimate{
		started: time.Now(),
		before:  real(bootSeconds + 2*p.WarmUp),
		window:  real(p.Seconds + aroundSeconds),
		windows: len(p.Arms) * len(p.Steps),
	}
}

func (e *estimate) ready(now time.Time) { e.measuring, e.slow = now, e.slowness(now) }

// slowness is how often what comes before the windows has taken its time by now, at least once: on a busy host the windows take
// longer, too.
func (e *estimate) slowness(now time.Time) float64 {
	return max(1, float64(now.Sub(e.started))/float64(e.before))
}

func (e *estimate) left(now time.Time, done int) time.Duration {
	if e.measuring.IsZero() {
		return max(0, e.before-now.Sub(e.started)) + time.Duration(float64(e.windows)*float64(e.window)*e.slowness(now))
	}
	window := time.Duration(float64(e.window) * e.slow)
	if done > 0 {
		window = now.Sub(e.measuring) / time.Duration(done)
	}
	return time.Duration(e.windows-done) * window
}

// deadline is far beyond what a busy host needs from event to event: it is for guests that never end.
func (e *estimate) deadline() time.Duration {
	return 10*time.Minute + 20*(e.before+e.window)
}
