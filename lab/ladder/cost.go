package ladder

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"temper.dev/temper/lab/plan"
)

// RunCosts counts what scheduling costs under each arm, and emits an event for each.
func RunCosts(ctx context.Context, site Site, p plan.Costs, emit func(plan.Event) error) error {
	// As in Run.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := ladder{Plan: plan.Plan{CPUs: p.CPUs, Seed: 1}, Site: site, emit: emit}
	if err := l.makeCgroups(); err != nil {
		return err
	}
	if l.Steady {
		if _, _, err := l.checkSteady(ctx); err != nil {
			return err
		}
	}
	for _, name := range p.Arms {
		cost, err := l.armCosts(ctx, name, p.Rounds)
		if err != nil {
			return fmt.Errorf("arm %s: %w", name, err)
		}
		if err := emit(plan.Event{Kind: "cost", Cost: cost}); err != nil {
			return err
		}
	}
	return emit(plan.Event{Kind: "done"})
}

func (l *ladder) armCosts(ctx context.Context, name string, rounds int) (cost *plan.Cost, err error) {
	arm, ok := plan.FindArm(name)
	if !ok {
		return nil, fmt.Errorf("no such arm")
	}
	mode, leave, err := l.enterArm(ctx, arm)
	if err != nil {
		return nil, err
	}
	defer func() {
		if leaveErr := leave(); err == nil {
			err = leaveErr
		}
	}()
	before, err := readAttachment()
	if err != nil {
		return nil, err
	}
	cost = &plan.Cost{Arm: name, Preempt: mode, Scheduler: before.ops, Nanos: map[string]float64{}}
	for _, operation := range plan.Operations {
		if cost.Nanos[operation.Name], err = l.operation(ctx, operation.Name, rounds); err != nil {
			return nil, fmt.Errorf("%s: %w", operation.Name, err)
		}
	}
	after, err := readAttachment()
	if err != nil {
		return nil, err
	}
	if reason := notThroughout(arm, before, after); reason != "" {
		return nil, errors.New(reason)
	}
	return cost, nil
}

// operation is the guest time of a round, in ns.
func (l *ladder) operation(ctx context.Context, name string, rounds int) (float64, error) {
	if name == "preempt" {
		idle, busy, err := l.wakeUps(ctx, rounds)
		return max(0, busy["p50_ns"]-idle["p50_ns"]), err
	}
	figures, err := l.runGenerator(ctx, "cost", name, rounds, l.CPUs)
	return figures["ns"], err
}
