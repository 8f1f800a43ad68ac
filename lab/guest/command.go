package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

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
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := logLines(out); err != nil {
		return err
	}
	status := 0
	if err := cmd.Wait(); err != nil {
		exited, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			return err
		}
		status = exited.ExitCode()
	}
	emit(plan.Event{Kind: "done", Text: strconv.Itoa(status)})
	return nil
}

func logLines(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			emit(plan.Event{Kind: "log", Text: line})
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// boundTurns gives each virtual CPU of the deterministic machine a turn in each quantum (the load folder's quantum.c).
func boundTurns(ctx context.Context, quantum int) error {
	if out, err := exec.CommandContext(ctx, "quantum", strconv.Itoa(quantum)).CombinedOutput(); err != nil {
		return fmt.Errorf("quantum: %w: %s", err, out)
	}
	return nil
}
