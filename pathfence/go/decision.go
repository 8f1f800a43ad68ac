package pathfence

import "time"

// What came of a request, beside the reasons of [RefusedError].
const (
	// Granted: it has a permit.
	Granted = "granted"
	// Withdrawn: its context ended while it waited.
	Withdrawn = "withdrawn"
)

// Decision is what came of a request that asked for a permit. One whose context had ended before has asked for none.
type Decision struct {
	// Class is the name of the request's class; "" where the fence was closed.
	Class string
	// Outcome is Granted, Withdrawn, or why it was refused.
	Outcome string
	// Waited is for how long it waited until then.
	Waited time.Duration
}

// watch is when a request comes, if anybody wants to know for how long it waits.
func (f *Fence) watch() time.Time {
	if f.onDecision == nil {
		return time.Time{}
	}
	return time.Now()
}

func (f *Fence) tellDecision(class, outcome string, began time.Time) {
	if f.onDecision != nil {
		f.onDecision(Decision{Class: class, Outcome: outcome, Waited: time.Since(began)})
	}
}
