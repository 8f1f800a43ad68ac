package ladder

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// startSpinners starts n background spinners on CPUs 0..cpus-1, and returns them once all of them work,
// with how to end them. A child starts where its parent is pinned, on the load generator's CPU: under
// strict tiers one that has not left it before the generator starts never does.
func (l *ladder) startSpinners(ctx context.Context, n, cpus int) (spinners []*exec.Cmd, stop func(), err error) {
	stop = func() {
		for _, s := range spinners {
			_ = s.Process.Kill()
			_ = s.Wait()
		}
	}
	for i := range n {
		s, err := l.command(ctx, "spin", i, cpus)
		if err == nil {
			err = l.startSpinner(s)
		}
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("spinner %d: %w", i, err)
		}
		spinners = append(spinners, s)
	}
	return spinners, stop, nil
}

func (l *ladder) startSpinner(s *exec.Cmd) error {
	works, err := s.StdoutPipe()
	if err != nil {
		return err
	}
	if err := l.startIn("background", s); err != nil {
		return err
	}
	if _, err := works.Read(make([]byte, 1)); err != nil {
		_ = s.Process.Kill()
		return fmt.Errorf("ended before it worked: %w", errors.Join(err, s.Wait()))
	}
	return nil
}
