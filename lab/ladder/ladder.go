// Package ladder runs a plan on the machine that it is called on: the guest's first process calls it
// in the lab, 'temper-lab demo --native' on a host.
package ladder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/plan"
)

// Site is where on its machine a ladder runs.
type Site struct {
	Cgroups string // folder of a cgroup with the cpu controller on for its children
	Dir     string // folder for what programs leave for each other, in memory
	Find    func(program string) (path string, err error)
	Env     []string // of the programs; nil: this process's
	Log     *os.File // what the programs say to people
	// SetPreemption brings the kernel into an arm's preemption mode, and tells which it is then in.
	SetPreemption func(mode string) (is string, err error)
	// StageIterations are as much computing as takes stageTime. 0: they are measured here.
	StageIterations uint64
	// Steady is a machine whose CPUs are meant to have one speed. It is refused where they have not.
	Steady bool
}

// ladder is one plan under way.
type ladder struct {
	plan.Plan
	Site
	service service
	arm     plan.Arm // in force
	options []any    // of scx_temper, beside those that say tiers
	rate    float64  // requests a second

	preemptingWake time.Duration // what a wake-up that interrupts a spinner takes, median

	emit func(plan.Event) error
}

// Run warms the machine up, then runs each arm's steps, and emits an event for each window.
func Run(ctx context.Context, site Site, p plan.Plan, emit func(plan.Event) error) error {
	// What it starts shall not outlive it. The kernel takes the end of the thread that started a
	// program for its parent's death, so that must be one thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := ladder{Plan: p, Site: site, emit: emit}
	ready, err := l.prepare(ctx)
	if err != nil {
		return err
	}
	if err := emit(plan.Event{Kind: "ready", Ready: ready}); err != nil {
		return err
	}
	for _, name := range p.Arms {
		if err := l.runArm(ctx, name); err != nil {
			return fmt.Errorf("arm %s: %w", name, err)
		}
	}
	return emit(plan.Event{Kind: "done"})
}

// prepare measures what the ladder needs to know, with the service alone.
func (l *ladder) prepare(ctx context.Context) (*plan.Ready, error) {
	if err := l.makeCgroups(); err != nil {
		return nil, err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, err
	}
	ready := &plan.Ready{Kernel: unix.ByteSliceToString(name.Release[:])}
	var err error
	if l.Steady {
		if ready.CPURatesAlone, ready.CPURates, err = l.checkSteady(ctx); err != nil {
			return nil, err
		}
	}
	if l.service, err = newService(l.Plan); err != nil {
		return nil, err
	}
	if ready.PreemptionMS, ready.PreemptingWakeMS, err = l.measurePreemption(ctx); err != nil {
		return nil, fmt.Errorf("measure a preemption: %w", err)
	}
	l.preemptingWake = time.Duration(ready.PreemptingWakeMS * 1e6)
	if ready.SaturationRPS, err = l.service.calibrate(ctx, l); err != nil {
		return nil, err
	}
	ready.RateRPS = l.rate
	return ready, nil
}

func (l *ladder) makeCgroups() error {
	for _, cgroup := range []string{"critical", "background"} {
		if err := os.Mkdir(l.cgroup(cgroup), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (l *ladder) runArm(ctx context.Context, name string) (err error) {
	arm, ok := plan.FindArm(name)
	if !ok {
		return fmt.Errorf("no such arm")
	}
	mode, leave, err := l.enterArm(ctx, arm)
	if err != nil {
		return l.markArm(ctx, arm, mode, err)
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
		w.Preempt = mode
		if err := l.emit(plan.Event{Kind: "window", Window: w}); err != nil {
			return err
		}
	}
	return nil
}

// markArm emits windows that do not count for an arm that could not be entered, if the machine is as it was before: the
// other arms have theirs.
func (l *ladder) markArm(ctx context.Context, arm plan.Arm, mode string, why error) error {
	now, err := readAttachment()
	if err != nil || ctx.Err() != nil || now.ops != "" {
		return errors.Join(why, err)
	}
	l.arm = plan.Arm{}
	if err := l.setGroups(l.arm); err != nil {
		return errors.Join(why, err)
	}
	for _, background := range l.Steps {
		w := &plan.Window{Arm: arm.Name, Preempt: mode}
		w.Step.Background, w.Step.InvalidReason = background, "the arm could not be entered: "+why.Error()
		if err := l.emit(plan.Event{Kind: "window", Window: w}); err != nil {
			return err
		}
	}
	return nil
}

// cgroup is the folder of one of the ladder's cgroups.
func (l *ladder) cgroup(name string) string { return l.Cgroups + "/" + name }

// command is one of the ladder's programs. It finds the site in its environment (the load folder's load.h).
func (l *ladder) command(ctx context.Context, program string, args ...any) (*exec.Cmd, error) {
	path, err := l.Find(program)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path)
	for _, a := range args {
		cmd.Args = append(cmd.Args, fmt.Sprint(a))
	}
	if cmd.Env = l.Env; l.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(slices.Clone(cmd.Env), "LADDER_CGROUPS="+l.Cgroups, "LADDER_DIR="+l.Dir)
	cmd.Stderr = l.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// serviceCommand is a program bound to the application CPUs.
func (l *ladder) serviceCommand(ctx context.Context, program string, args ...any) (*exec.Cmd, error) {
	return l.command(ctx, "taskset", append([]any{"-c", fmt.Sprintf("0-%d", l.CPUs-1), program}, args...)...)
}

// startIn starts a program in one of the ladder's cgroups.
func (l *ladder) startIn(cgroup string, cmd *exec.Cmd) error {
	dir, err := os.Open(l.cgroup(cgroup))
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return cmd.Start()
}
