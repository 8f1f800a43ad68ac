// Package exit gives every failure one line, a cure and an exit status of its own.
// The statuses are those of enum temper_status in sched/intf.h.
package exit

import (
	"errors"
	"fmt"
)

// Exit statuses, the same for temper and scx_temper.
const (
	OK             = 0
	Failed         = 1
	Usage          = 2
	NotRoot        = 3
	NoSchedExt     = 4
	BadBTF         = 5
	OtherScheduler = 6
	LimitsPresent  = 7
	LoadFailed     = 8
	Config         = 9
	NoCgroup       = 10
	Ejected        = 11
	NoDisk         = 12
	NoNetwork      = 13
	Hotplug        = 14
	IsolatedCPUs   = 15
	NotFound       = 127 // as shells have it
	Interrupted    = 130
)

// Error is a failure that a person reads: what is wrong, what to do, and the status to leave with.
type Error struct {
	Status int
	Cause  error
	Cure   string // imperative, without a full stop; empty where there is none
}

func (e *Error) Error() string {
	if e.Cure == "" {
		return e.Cause.Error()
	}
	return fmt.Sprintf("%v; %s", e.Cause, e.Cure)
}

func (e *Error) Unwrap() error { return e.Cause }

// New makes an Error from a format for the cause.
func New(status int, cure, format string, args ...any) *Error {
	return &Error{Status: status, Cause: fmt.Errorf(format, args...), Cure: cure}
}

// StatusOf is the exit status that err asks for: OK for nil, Failed where it names none.
func StatusOf(err error) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return Failed
}
