package lab

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

func (e *estimate) ready(now time.Time) { e.measuring = now }

func (e *estimate) left(now time.Time, done int) time.Duration {
	if e.measuring.IsZero() {
		return max(0, e.before-now.Sub(e.started)) + time.Duration(e.windows)*e.window
	}
	window := e.window
	if done > 0 {
		window = now.Sub(e.measuring) / time.Duration(done)
	}
	return time.Duration(e.windows-done) * window
}

// deadline is far beyond what a busy host needs: it is for guests that never end.
func (e *estimate) deadline() time.Duration {
	return 5*time.Minute + 10*(e.before+time.Duration(e.windows)*e.window)
}
