package observe

import (
	"context"
	"time"

	"temper.dev/temper/internal/base/host"
)

// BufferKB is a CPU's trace buffer: some 100,000 events.
const BufferKB = 8192

// Record traces for a time, and looks for tasks each second of it. Recording costs each context switch about a
// microsecond.
func Record(ctx context.Context, root host.Root, tasks *Tasks, length time.Duration) (trace Trace, err error) {
	recorder, err := NewRecorder(root, BufferKB)
	if err != nil {
		return trace, err
	}
	defer func() {
		if closeErr := recorder.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := recorder.Start(); err != nil {
		return trace, err
	}
	end := time.After(length)
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for recording := true; recording; {
		if err := tasks.Look(); err != nil {
			return trace, err
		}
		select {
		case <-again.C:
		case <-end:
			recording = false
		case <-ctx.Done():
			return trace, ctx.Err()
		}
	}
	if err := recorder.Stop(); err != nil {
		return trace, err
	}
	if err := tasks.Look(); err != nil {
		return trace, err
	}
	return recorder.Trace()
}
