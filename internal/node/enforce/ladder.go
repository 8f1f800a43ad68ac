package enforce

import (
	"time"

	"temper.dev/temper/internal/base/exit"
)

// Rung is a step of the fallback ladder.
type Rung string

// The rungs, from the top.
const (
	SCX     Rung = "scx"      // scx_temper is attached
	CPUIdle Rung = "cpu.idle" // stock scheduler, cpu.idle=1 on background cgroups
	Observe Rung = "observe"  // stock scheduler, nothing is changed
)

// Rungs lists them from the top.
var Rungs = []Rung{SCX, CPUIdle, Observe}

// How failures of scx_temper are answered.
const (
	maxFailures   = 5               // so many ...
	failureWindow = 5 * time.Minute // ... within this time, and the node falls
	restartStep   = 100 * time.Millisecond
	firstBackoff  = time.Second
	maxBackoff    = 5 * time.Minute
	stableAfter   = 10 * time.Minute // attached for so long: all is forgiven
)

// Never is the Retry of a Step after which only a new configuration or a restart makes sense.
const Never time.Duration = -1

// Step is the ladder's answer to a failure.
type Step struct {
	Fall  bool          // leave the top rung
	Retry time.Duration // start scx_temper again after this time, or Never
}

// Ladder decides when a node falls from the top rung and when it tries to climb back.
// It has no clock of its own.
type Ladder struct {
	failures []time.Time
	attached time.Time // zero while scx_temper is not attached
	fallen   bool      // has fallen, and was not stable since
	backoff  time.Duration
	stalled  bool // the kernel's watchdog has thrown it out, and it was not stable since
}

// Attached tells that scx_temper has attached.
func (l *Ladder) Attached(now time.Time) { l.attached = now }

// Failed tells that scx_temper is gone with this status, and asks what to do.
func (l *Ladder) Failed(now time.Time, status int) Step {
	wasAttached := !l.attached.IsZero()
	if wasAttached && now.Sub(l.attached) >= stableAfter {
		*l = Ladder{}
	}
	l.attached = time.Time{}

	switch status {
	case exit.Hotplug: // asks for a restart, and is nobody's failure
		return Step{Retry: 0}
	case exit.Usage, exit.NotRoot, exit.NoSchedExt, exit.BadBTF, exit.IsolatedCPUs: // cannot change while we run
		return Step{Fall: true, Retry: Never}
	case exit.OtherScheduler, exit.LimitsPresent, exit.LoadFailed, exit.Config, exit.NoCgroup: // refused to attach
		return l.fall()
	}
	l.failures = append(l.recent(now), now)
	if len(l.failures) >= maxFailures || l.fallen && !wasAttached {
		return l.fall()
	}
	return Step{Retry: time.Duration(len(l.failures)-1) * restartStep}
}

// Stalled is Failed for a scheduler that the kernel's watchdog has thrown out. What starved a task for 30 s is probably still
// there. So the second time the node falls: it would be thrown out every 30 s otherwise.
func (l *Ladder) Stalled(now time.Time) Step {
	step := l.Failed(now, exit.Ejected)
	if l.stalled && !step.Fall {
		step = l.fall()
	}
	l.stalled = true
	return step
}

func (l *Ladder) fall() Step {
	l.fallen = true
	l.backoff = min(max(2*l.backoff, firstBackoff), maxBackoff)
	return Step{Fall: true, Retry: l.backoff}
}

func (l *Ladder) recent(now time.Time) []time.Time {
	for len(l.failures) > 0 && now.Sub(l.failures[0]) > failureWindow {
		l.failures = l.failures[1:]
	}
	return l.failures
}

// Failures is the number of failures that count against scx_temper now.
func (l *Ladder) Failures(now time.Time) int { return len(l.recent(now)) }
