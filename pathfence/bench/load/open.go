package load

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Fate is what became of a request.
type Fate int

const (
	Answered Fate = iota
	Refused       // the service said no
	Lost          // it failed, or there was no answer for as long as the client waits
)

// Result is a request and its fate.
type Result struct {
	Arrival
	Late    time.Duration // how long after it was due it was sent: the generator's own delay
	Latency time.Duration // from when it was due until its fate was known
	Fate    Fate
}

// ErrRefused is what a Target says of a request that the service did not want.
var ErrRefused = errors.New("refused")

// Target is a service.
type Target interface {
	// Ask sends a request and waits for its answer, until the deadline.
	Ask(path string, work time.Duration, deadline time.Time) error
}

// Open sends each request when it is due, counted from start, and waits for all fates. A request without an answer
// `patience` after it was due is given up.
func Open(ctx context.Context, start time.Time, arrivals []Arrival, target Target, patience time.Duration) ([]Result, error) {
	results := make([]Result, len(arrivals))
	var under sync.WaitGroup
	defer under.Wait()
	// A thread of its own: the runtime's timers are no finer than a millisecond where nothing else runs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i, a := range arrivals {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		due := start.Add(a.At)
		if err := sleep(time.Until(due)); err != nil {
			return nil, err
		}
		under.Go(func() { results[i] = ask(target, a, due, patience) })
	}
	under.Wait()
	return results, ctx.Err()
}

func ask(target Target, a Arrival, due time.Time, patience time.Duration) Result {
	r := Result{Arrival: a, Late: time.Since(due)}
	err := target.Ask(a.Path, a.Work, due.Add(patience))
	r.Latency = time.Since(due)
	switch {
	case errors.Is(err, ErrRefused):
		r.Fate = Refused
	case err != nil:
		r.Fate = Lost
	}
	return r
}

func sleep(length time.Duration) error {
	if length <= 0 {
		return nil
	}
	left := unix.NsecToTimespec(int64(length))
	for {
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &left, &left)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
