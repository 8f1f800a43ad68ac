package ladder

import (
	"context"
	"fmt"
	"os"
)

// chain is ten services in a row, a fixed amount of computing each.
type chain struct{}

const chainRatePerCPU = 45.0 // requests a second: about a fifth of the machine

func (chain) background() worker { return spinner }

func (chain) threads() string { return "chain" }

func (chain) calibrate(ctx context.Context, l *ladder) (float64, error) {
	if err := l.findIterations(ctx); err != nil {
		return 0, err
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
	return l.runService(ctx, "chain", l.rate, l.StageIterations, warmUp, seconds, seed, bit(l.Bursty), l.CPUs, l.latencyFile())
}
