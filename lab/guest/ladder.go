package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/ladder"
	"temper.dev/temper/lab/plan"
)

// runLadder makes the machine steady, and runs the plan on it.
func runLadder(ctx context.Context, p plan.Plan) error {
	// The generator's CPU also takes what belongs to nobody: this process and the kernel's own threads' helpers.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var self unix.CPUSet
	self.Set(p.CPUs)
	if err := unix.SchedSetaffinity(0, &self); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", p.CPUs, err)
	}
	if err := boundTurns(ctx, p.Quantum); err != nil {
		return err
	}
	site := ladder.Site{
		Cgroups: "/sys/fs/cgroup", Dir: labDir, Find: exec.LookPath, Log: os.Stderr,
		SetPreemption: ladder.SetPreemption, StageIterations: ladder.LabIterations, Steady: true,
	}
	return ladder.Run(ctx, site, p, func(e plan.Event) error { emit(e); return nil })
}
