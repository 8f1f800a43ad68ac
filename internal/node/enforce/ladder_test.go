package enforce

import (
	"testing"
	"time"

	"temper.dev/temper/internal/base/exit"
)

const killed = 128 + 9

func TestKilledIsStartedAgainAtOnceThenFalls(t *testing.T) {
	var l Ladder
	now := time.Unix(1000, 0)
	for i := range maxFailures - 1 {
		l.Attached(now)
		step := l.Failed(now, killed)
		if step.Fall || step.Retry >= time.Second {
			t.Fatalf("failure %d: %+v", i+1, step)
		}
		now = now.Add(time.Second)
	}
	l.Attached(now)
	if step := l.Failed(now, killed); !step.Fall || step.Retry != firstBackoff {
		t.Errorf("failure %d: %+v", maxFailures, step)
	}
}

func TestSlowFailuresNeverFall(t *testing.T) {
	var l Ladder
	now := time.Unix(1000, 0)
	for range 100 {
		l.Attached(now)
		if step := l.Failed(now, exit.Ejected); step.Fall {
			t.Fatal("fell although failures are far apart")
		}
		now = now.Add(failureWindow/(maxFailures-1) + time.Second)
	}
}

func TestBackoffDoublesAndIsForgiven(t *testing.T) {
	var l Ladder
	now := time.Unix(1000, 0)
	want := firstBackoff
	for range 12 {
		step := l.Failed(now, exit.LimitsPresent)
		if !step.Fall || step.Retry != want {
			t.Fatalf("got %+v, want a fall and %v", step, want)
		}
		now = now.Add(step.Retry)
		want = min(2*want, maxBackoff)
	}
	if want != maxBackoff {
		t.Errorf("the backoff ends at %v", want)
	}
	l.Attached(now)
	now = now.Add(stableAfter)
	if step := l.Failed(now, killed); step.Fall || step.Retry != 0 {
		t.Errorf("after a stable time: %+v", step)
	}
}

func TestAttemptToClimbThatFails(t *testing.T) {
	var l Ladder
	now := time.Unix(1000, 0)
	l.Failed(now, exit.LoadFailed)
	if step := l.Failed(now, exit.Failed); !step.Fall || step.Retry != 2*firstBackoff {
		t.Errorf("an attempt that never attached: %+v", step)
	}
}

func TestStalledTwiceFalls(t *testing.T) {
	const watchdog = 30 * time.Second
	var l Ladder
	now := time.Unix(1000, 0)
	stall := func() Step {
		l.Attached(now)
		now = now.Add(watchdog)
		return l.Stalled(now)
	}
	if step := stall(); step.Fall || step.Retry != 0 {
		t.Errorf("the first: %+v", step)
	}
	want := firstBackoff
	for i := range 20 {
		step := stall()
		if !step.Fall || step.Retry != want {
			t.Errorf("%d more: %+v, want a fall and %v", i+1, step, want)
		}
		now, want = now.Add(step.Retry), min(2*want, maxBackoff)
	}
	l.Attached(now)
	now = now.Add(stableAfter)
	if step := l.Stalled(now); step.Fall || step.Retry != 0 {
		t.Errorf("after a stable time: %+v", step)
	}
}

func TestStatuses(t *testing.T) {
	for status, want := range map[int]Step{
		exit.NoSchedExt: {true, Never}, exit.BadBTF: {true, Never}, exit.IsolatedCPUs: {true, Never}, exit.NotRoot: {true, Never}, exit.Usage: {true, Never},
		exit.OtherScheduler: {true, firstBackoff}, exit.LimitsPresent: {true, firstBackoff}, exit.LoadFailed: {true, firstBackoff},
		exit.Hotplug: {false, 0}, exit.Ejected: {false, 0}, exit.OK: {false, 0}, killed: {false, 0},
	} {
		var l Ladder
		l.Attached(time.Unix(1000, 0))
		if got := l.Failed(time.Unix(1001, 0), status); got != want {
			t.Errorf("status %d: got %+v, want %+v", status, got, want)
		}
	}
}
