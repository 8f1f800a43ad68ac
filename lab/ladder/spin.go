package ladder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startSpinners starts n background spinners on CPUs 0..cpus-1, and returns once all of them work,
// with how to end them. A child starts where its parent is pinned, on the load generator's CPU: under
// strict tiers one that has not left it before the generator starts never does.
func (l *ladder) startSpinners(ctx context.Context, n, cpus int) (stop func(), err error) {
	var spinners []*exec.Cmd
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
			return nil, fmt.Errorf("spinner %d: %w", i, err)
		}
		spinners = append(spinners, s)
	}
	return stop, nil
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

const (
	spinUnit  = 1000        // iterations for each count of a spinner (the load folder's spin.c)
	speedTime = time.Second // over which the speed is measured
)

// measureSpeed is how many iterations a second CPU 0 computes.
func (l *ladder) measureSpeed(ctx context.Context) (float64, error) {
	stop, err := l.startSpinners(ctx, 1, 1)
	if err != nil {
		return 0, err
	}
	defer stop()
	count := func() (uint64, time.Time, error) {
		slots, err := os.ReadFile(filepath.Join(l.Dir, "work"))
		if err != nil {
			return 0, time.Time{}, err
		}
		return binary.LittleEndian.Uint64(slots), time.Now(), nil
	}
	before, from, err := count()
	if err != nil {
		return 0, err
	}
	time.Sleep(speedTime)
	after, to, err := count()
	if err != nil {
		return 0, err
	}
	if after == before {
		return 0, fmt.Errorf("a spinner alone on CPU 0 did nothing within %s", speedTime)
	}
	return float64(after-before) * spinUnit / to.Sub(from).Seconds(), nil
}
