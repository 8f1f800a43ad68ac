package ladder

import (
	"context"
	"fmt"
	"os"
	"time"
)

// chain is ten services in a row, a fixed amount of computing each.
type chain struct{}

const (
	// LabIterations take a chain's stage about 0.4 ms at the lab's speed.
	LabIterations   = 8250
	stageTime       = 400 * time.Microsecond
	chainRatePerCPU = 45.0 // requests a second: about a fifth of the machine
)

func (chain) calibrate(ctx context.Context, l *ladder) (float64, error) {
	if l.StageIterations == 0 {
		perSecond, err := l.measureSpeed(ctx)
		if err != nil {
			return 0, err
		}
		l.StageIterations = uint64(perSecond * stageTime.Seconds())
	}
	if err := writeFile(l.cgroup("critical/cgroup.subtree_control"), "+cpu"); err != nil {
		return 0, err
	}
	for stage := range 10 {
		if err := os.Mkdir(l.cgroup(fmt.Sprintf("critical/s%d", stage)), 0o755); err != nil {
			return 0, err
		}
	}
	l.rate = chainRatePerCPU * float64(l.CPUs)
	_, err := chain{}.load(ctx, l, 0, l.WarmUp, l.Seed)
	return 0, err
}

func (chain) load(ctx context.Context, l *ladder, warmUp, seconds float64, seed int64) (map[string]float64, error) {
	return l.runGenerator(ctx, "chain", l.rate, l.StageIterations, warmUp, seconds, seed, bit(l.Bursty), l.CPUs, l.latencyFile())
}
