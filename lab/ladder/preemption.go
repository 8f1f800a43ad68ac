package ladder

import (
	"context"
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

// SetPreemption switches a PREEMPT_DYNAMIC kernel, and reads back that it did.
func SetPreemption(mode string) (is string, err error) {
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

// measurePreemption returns by how much a wake-up is slower, at p99, where it has to interrupt a
// spinner than where the CPU idles, in ms, under the best stock setting.
func (l *ladder) measurePreemption(ctx context.Context) (float64, error) {
	arm, _ := plan.FindArm("cpuidle")
	_, leave, err := l.enterArm(ctx, arm)
	if err != nil {
		return 0, err
	}
	figures, err := l.preemption(ctx, preemptionWakes)
	if err != nil {
		return 0, err
	}
	return figures["p99_ns"] / 1e6, leave()
}

// preemption is by how much a critical thread's wake-up on CPU 0 is slower where it has to interrupt a spinner, in ns.
func (l *ladder) preemption(ctx context.Context, wakes int) (map[string]float64, error) {
	idle, err := l.runGenerator(ctx, "preempt", wakes, l.Seed, l.CPUs)
	if err != nil {
		return nil, err
	}
	_, stop, err := l.startBackground(ctx, spinner, 1, 1)
	if err != nil {
		return nil, err
	}
	defer stop()
	busy, err := l.runGenerator(ctx, "preempt", wakes, l.Seed, l.CPUs)
	for name := range busy {
		busy[name] = max(0, busy[name]-idle[name])
	}
	return busy, err
}
