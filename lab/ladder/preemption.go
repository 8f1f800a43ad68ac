package ladder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"

	"temper.dev/temper/lab/plan"
)

const preemptFile = "/sys/kernel/debug/sched/preempt"

var modeInForce = regexp.MustCompile(`\((\w+)\)`)

// Preemption reads which mode a PREEMPT_DYNAMIC kernel is in.
func Preemption() (mode string, err error) {
	text, err := os.ReadFile(preemptFile)
	if err != nil {
		return "", err
	}
	m := modeInForce.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s says %q, which marks no mode as the one in force", preemptFile, text)
	}
	return string(m[1]), nil
}

// SetPreemption switches a PREEMPT_DYNAMIC kernel, and reads back that it did. Before 6.13 none is lazy: what distributions
// booted with then was voluntary.
func SetPreemption(mode string) (is string, err error) {
	modes, err := os.ReadFile(preemptFile)
	if err != nil {
		return "", err
	}
	if mode == "lazy" && !bytes.Contains(modes, []byte(mode)) {
		mode = "voluntary"
	}
	if err := writeFile(preemptFile, mode); err != nil {
		return "", err
	}
	if is, err = Preemption(); err == nil && is != mode {
		err = fmt.Errorf("%s: asked for %s, is %s", preemptFile, mode, is)
	}
	return is, err
}

// preemptionWakes is how often a wake-up is timed: enough for a steady 99th percentile.
const preemptionWakes = 1000

// measurePreemption returns, in ms and under the best stock setting, by how much a wake-up is slower at p99 where it
// has to interrupt a spinner than where the CPU idles, and what one that interrupts takes, in the median.
func (l *ladder) measurePreemption(ctx context.Context) (cost, median float64, err error) {
	arm, _ := plan.FindArm("cpuidle")
	_, leave, err := l.enterArm(ctx, arm)
	if err != nil {
		return 0, 0, err
	}
	forget, err := l.observeCalibration()
	if err != nil {
		return 0, 0, err
	}
	idle, busy, err := l.wakeUps(ctx, preemptionWakes)
	if err := errors.Join(err, forget()); err != nil {
		return 0, 0, err
	}
	return max(0, busy["p99_ns"]-idle["p99_ns"]) / 1e6, busy["p50_ns"] / 1e6, leave()
}

// wakeUps times wake-ups of a critical thread on CPU 0, while that CPU idles and while it runs a spinner.
func (l *ladder) wakeUps(ctx context.Context, wakes int) (idle, busy map[string]float64, err error) {
	if idle, err = l.runGenerator(ctx, "preempt", wakes, l.Seed, l.CPUs); err != nil {
		return nil, nil, err
	}
	_, stop, err := l.startBackground(ctx, spinner, 1, 1)
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	busy, err = l.runGenerator(ctx, "preempt", wakes, l.Seed, l.CPUs)
	return idle, busy, err
}
