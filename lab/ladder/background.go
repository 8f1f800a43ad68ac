package ladder

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/plan"
)

// Programs of the background workers.
const (
	spinner = "spin"
	resizer = "resize"
)

// startBackground starts n background workers on CPUs 0..cpus-1, and returns them once all of them work,
// with how to end them. A child starts where its parent is pinned, on the load generator's CPU: under
// strict tiers one that has not left it before the generator starts never does.
func (l *ladder) startBackground(ctx context.Context, program string, n, cpus int) (workers []*exec.Cmd, stop func(), err error) {
	stop = func() {
		for _, w := range workers {
			_ = w.Process.Kill()
			_ = w.Wait()
		}
	}
	for i := range n {
		w, err := l.command(ctx, program, i, cpus)
		if err == nil {
			underPolicy(w, l.arm.BackgroundPolicy)
			err = l.startWorker(w)
		}
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("%s %d: %w", program, i, err)
		}
		workers = append(workers, w)
	}
	return workers, stop, nil
}

func (l *ladder) startWorker(w *exec.Cmd) error {
	works, err := w.StdoutPipe()
	if err != nil {
		return err
	}
	if err := l.startIn("background", w); err != nil {
		return err
	}
	if _, err := works.Read(make([]byte, 1)); err != nil {
		_ = w.Process.Kill()
		return fmt.Errorf("ended before it worked: %w", errors.Join(err, w.Wait()))
	}
	return nil
}

// policyReason says why a window does not count if a worker was not under the arm's policy.
func policyReason(want plan.Policy, workers []*exec.Cmd) (string, error) {
	number := uint32(unix.SCHED_NORMAL)
	if want == plan.SchedIdle {
		number = unix.SCHED_IDLE
	}
	for i, w := range workers {
		attr, err := unix.SchedGetAttr(w.Process.Pid, 0)
		if err != nil {
			return "", fmt.Errorf("policy of worker %d: %w", i, err)
		}
		if attr.Policy != number {
			return fmt.Sprintf("background worker %d had scheduling policy %d, not %d", i, attr.Policy, number), nil
		}
	}
	return "", nil
}
