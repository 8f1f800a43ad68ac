package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/plan"
)

const cgroupRoot = "/sys/fs/cgroup/"

func writeFile(path, text string) error {
	return os.WriteFile(path, []byte(text), 0)
}

// enterArm sets the machine up for an arm and returns how to leave it.
func enterArm(ctx context.Context, arm plan.Arm) (leave func() error, err error) {
	if err := setPreemption(arm.Preempt); err != nil {
		return nil, err
	}
	// cpu.idle=1 hides the weight and refuses to have it written, so it is cleared first.
	for _, set := range []struct{ file, value string }{
		{"background/cpu.idle", "0"},
		{"background/cpu.weight", "1"},
	} {
		if err := writeFile(cgroupRoot+set.file, set.value); err != nil {
			return nil, err
		}
	}
	switch {
	case arm.Temper:
		return attachTemper(ctx)
	case arm.Idle:
		return func() error { return nil }, writeFile(cgroupRoot+"background/cpu.idle", "1")
	}
	return func() error { return nil }, nil
}

const preemptFile = "/sys/kernel/debug/sched/preempt"

// setPreemption switches a PREEMPT_DYNAMIC kernel, and reads back that it did.
func setPreemption(mode string) error {
	if err := writeFile(preemptFile, mode); err != nil {
		return err
	}
	text, err := os.ReadFile(preemptFile)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), "("+mode+")") {
		return fmt.Errorf("%s: asked for %s, is %s", preemptFile, mode, strings.TrimSpace(string(text)))
	}
	return nil
}

// attachTemper starts the loader and waits until it says that the scheduler is attached.
func attachTemper(ctx context.Context) (leave func() error, err error) {
	cmd := exec.CommandContext(ctx, "scx_temper", "--json",
		"--tier", "critical="+cgroupRoot+"critical", "--tier", "background="+cgroupRoot+"background")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var event struct{ Event, Message string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("scx_temper said %q: %w", lines.Text(), err)
		}
		switch event.Event {
		case "attached":
			return func() error {
				if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
					return err
				}
				return cmd.Wait()
			}, nil
		case "error", "exited":
			return nil, fmt.Errorf("scx_temper: %s", event.Message)
		}
	}
	return nil, fmt.Errorf("scx_temper ended before it attached: %w", cmd.Wait())
}
