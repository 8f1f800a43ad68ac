package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"temper.dev/temper/lab/plan"
)

// runCommand runs one command, its output as "log" events, its exit status as the "done" event.
func runCommand(ctx context.Context, c plan.Command) error {
	if c.Quantum > 0 {
		if err := boundTurns(ctx, c.Quantum); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	out := &lines{}
	cmd.Stdout, cmd.Stderr = out, out
	// What it has started may go on, and keep the output open for ever.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	out.end()
	exited, failed := errors.AsType[*exec.ExitError](err)
	status := 0
	switch {
	case failed:
		status = exited.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay):
		emit(plan.Event{Kind: "log", Text: "temper-lab: what the command has started goes on, and is ended with the guest\n"})
	case err != nil:
		return err
	}
	emit(plan.Event{Kind: "done", Text: strconv.Itoa(status)})
	return nil
}

// lines are told one by one. Only the goroutine that copies the output writes them.
type lines struct{ rest []byte }

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		emit(plan.Event{Kind: "log", Text: string(l.rest[:i+1])})
		l.rest = l.rest[i+1:]
	}
}

func (l *lines) end() {
	if len(l.rest) > 0 {
		emit(plan.Event{Kind: "log", Text: string(l.rest)})
	}
}

// boundTurns gives each virtual CPU of the deterministic machine a turn in each quantum (the load folder's quantum.c).
func boundTurns(ctx context.Context, quantum int) error {
	if out, err := exec.CommandContext(ctx, "quantum", strconv.Itoa(quantum)).CombinedOutput(); err != nil {
		return fmt.Errorf("quantum: %w: %s", err, out)
	}
	return nil
}
