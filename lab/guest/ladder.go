package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/plan"
)

// ladder is one plan under way.
type ladder struct {
	plan.Plan
	service service
	rate    float64 // requests a second
}

// runLadder warms the machine up, then runs each arm's steps, one window event each.
func runLadder(ctx context.Context, p plan.Plan) error {
	l := ladder{Plan: p}
	if err := l.prepare(ctx); err != nil {
		return err
	}
	saturation, err := l.service.calibrate(ctx, &l)
	if err != nil {
		return err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	emit(plan.Event{Kind: "ready", Ready: &plan.Ready{
		Kernel: unix.ByteSliceToString(name.Release[:]), SaturationRPS: saturation, RateRPS: l.rate,
	}})
	for _, name := range p.Arms {
		if err := l.runArm(ctx, name); err != nil {
			return fmt.Errorf("arm %s: %w", name, err)
		}
	}
	emit(plan.Event{Kind: "done"})
	return nil
}

func (l *ladder) prepare(ctx context.Context) error {
	// The generator's CPU also takes what belongs to nobody: this process and the kernel's own threads' helpers.
	var self unix.CPUSet
	self.Set(l.CPUs)
	if err := unix.SchedSetaffinity(0, &self); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", l.CPUs, err)
	}
	if out, err := exec.CommandContext(ctx, "quantum", strconv.Itoa(l.Quantum)).CombinedOutput(); err != nil {
		return fmt.Errorf("quantum: %w: %s", err, out)
	}
	for _, cgroup := range []string{"critical", "background"} {
		if err := os.Mkdir(cgroupRoot+cgroup, 0o755); err != nil {
			return err
		}
	}
	var err error
	l.service, err = newService(l.Scenario)
	return err
}

func (l *ladder) runArm(ctx context.Context, name string) (err error) {
	arm, ok := plan.FindArm(name)
	if !ok {
		return fmt.Errorf("no such arm")
	}
	leave, err := enterArm(ctx, arm)
	if err != nil {
		return err
	}
	defer func() {
		if leaveErr := leave(); err == nil {
			err = leaveErr
		}
	}()
	for _, background := range l.Steps {
		w, err := l.runWindow(ctx, arm, background)
		if err != nil {
			return fmt.Errorf("step %d: %w", background, err)
		}
		emit(plan.Event{Kind: "window", Window: w})
	}
	return nil
}
