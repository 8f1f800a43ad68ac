package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/stage"
)

// Instructions counts what the service executes for a request, with the shared pool and with the fence, its classes
// configured or learned: callgrind runs it once for few requests and once for many, one at a time, and the difference is
// theirs. What ticks meanwhile is in it, for far longer than outside of callgrind.
func (s Study) Instructions(ctx context.Context, log io.Writer) (map[string]float64, error) {
	const few, many = 200, 2200
	counts := map[string]float64{}
	for _, arm := range []Arm{sharedPool, wholeFence, learnedFence} {
		fmt.Fprintf(log, "instructions for a request · %s\n", arm.Name)
		least, err := s.count(ctx, arm, few)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arm.Name, err)
		}
		most, err := s.count(ctx, arm, many)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arm.Name, err)
		}
		counts[arm.Name] = float64(most-least) / (many - few)
	}
	return counts, nil
}

// count is how many instructions the service executes from its start to its end, with so many requests.
func (s Study) count(ctx context.Context, arm Arm, requests int) (total int64, err error) {
	folder, err := os.MkdirTemp("", "pathfence-bench")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	said, written := filepath.Join(folder, "said"), filepath.Join(folder, "callgrind.out")
	counted := append([]string{"valgrind", "--tool=callgrind", "--log-file=" + said, "--callgrind-out-file=" + written}, s.Service...)
	run := Run{Programs: Programs{Node: s.Node, Service: counted}, Scale: s.Scale, Arm: arm, Disturbance: undisturbed}
	if err := run.ask(ctx, requests); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(said)
	if err != nil {
		return 0, err
	}
	return parseCollected(string(text))
}

// ask starts the processes, sends requests without work one after the other, and ends the processes.
func (r Run) ask(ctx context.Context, requests int) (err error) {
	s, err := r.start()
	defer func() { err = errors.Join(err, s.stop()) }()
	if err != nil {
		return err
	}
	defer s.client.Close()
	for range requests {
		if err := errors.Join(ctx.Err(), s.client.Ask(record.Innocent, 0, time.Now().Add(stage.Patience))); err != nil {
			return err
		}
	}
	return nil
}

// parseCollected reads "==PID== Collected : N" of what callgrind says at its end.
func parseCollected(said string) (int64, error) {
	for line := range strings.Lines(said) {
		if _, number, ok := strings.Cut(line, "Collected : "); ok {
			return strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		}
	}
	return 0, fmt.Errorf("callgrind counted nothing: %s", said)
}
