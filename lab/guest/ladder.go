package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/ladder"
	"temper.dev/temper/lab/plan"
)

func runLadder(ctx context.Context, p plan.Plan) error {
	text, err := os.ReadFile(plan.WorkloadFile)
	if err == nil {
		err = json.Unmarshal(text, &p.Workload)
	} else if os.IsNotExist(err) { // the service is one of the lab's own
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", plan.WorkloadFile, err)
	}
	return onSite(ctx, p.CPUs, p.Quantum, func(site ladder.Site) error {
		return ladder.Run(ctx, site, p, func(e plan.Event) error { emit(e); return nil })
	})
}

func runCosts(ctx context.Context, p plan.Costs) error {
	return onSite(ctx, p.CPUs, p.Quantum, func(site ladder.Site) error {
		return ladder.RunCosts(ctx, site, p, func(e plan.Event) error { emit(e); return nil })
	})
}

func runLimits(ctx context.Context, p plan.Limits) error {
	return onSite(ctx, p.CPUs, p.Quantum, func(site ladder.Site) error {
		return ladder.RunLimits(ctx, site, p, func(e plan.Event) error { emit(e); return nil })
	})
}

// onSite makes the machine steady.
func onSite(ctx context.Context, cpus, quantum int, do func(ladder.Site) error) error {
	// The generator's CPU also takes what belongs to nobody: this process and the kernel's own threads' helpers.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var self unix.CPUSet
	self.Set(cpus)
	if err := unix.SchedSetaffinity(0, &self); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", cpus, err)
	}
	if err := boundTurns(ctx, quantum); err != nil {
		return err
	}
	return do(ladder.Site{
		Cgroups: "/sys/fs/cgroup", Dir: labDir, Find: exec.LookPath, Log: os.Stderr,
		SetPreemption: ladder.SetPreemption, StageIterations: ladder.LabIterations, Steady: true,
	})
}
