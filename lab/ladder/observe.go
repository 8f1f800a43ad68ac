package ladder

import (
	"context"
	"errors"
	"strings"
	"time"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/observe"
)

// observe watches the window that begins now, if the plan asks for it. The function returned waits for the report,
// which is nil if it does not.
func (l *ladder) observe(ctx context.Context) (wait func() (*observe.Report, error)) {
	if !l.Observe {
		return func() (*observe.Report, error) { return nil, nil }
	}
	var report observe.Report
	done := make(chan error, 1)
	go func() {
		var err error
		report, err = l.watch(ctx)
		done <- err
	}()
	return func() (*observe.Report, error) { return &report, <-done }
}

// observeCalibration has what is measured until forget is called cost what it costs in windows that are watched.
func (l *ladder) observeCalibration() (forget func() error, err error) {
	if !l.Observe {
		return func() error { return nil }, nil
	}
	recorder, err := observe.NewRecorder("", observe.BufferKB)
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(recorder.Stop(), recorder.Close()) }, recorder.Start()
}

// watch records the part of the window that counts.
func (l *ladder) watch(ctx context.Context) (observe.Report, error) {
	node := host.Root("")
	path := func(cgroup string) string { return strings.TrimPrefix(l.cgroup(cgroup), node.Cgroup("")) }
	tasks := &observe.Tasks{Root: node, Found: map[int]observe.Task{}, RoleOf: observe.Cgroups(map[string]observe.Role{
		path("critical"): observe.Higher, path("background"): observe.Background,
	})}
	select {
	case <-time.After(seconds(settle)):
	case <-ctx.Done():
		return observe.Report{}, ctx.Err()
	}
	trace, err := observe.Record(ctx, node, tasks, seconds(l.Seconds))
	if err != nil {
		return observe.Report{}, err
	}
	return observe.Summarize(trace, tasks.Found, l.preemptingWake), nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
