package ladder

import (
	"context"
	"time"
)

// web is a server of one thread pool that computes, beside a job that resizes images.
type web struct{}

// webTime is what a request takes alone.
const webTime = 3 * time.Millisecond

func (web) background() worker { return resizer }

func (web) threads() string { return "web" }

func (web) calibrate(ctx context.Context, l *ladder) (float64, error) {
	if err := l.findIterations(ctx); err != nil {
		return 0, err
	}
	figures, err := web{}.offer(ctx, l, closedLoop, l.WarmUp/2, l.WarmUp/2, l.Seed)
	if err != nil {
		return 0, err
	}
	saturation := figures["sent"] / figures["elapsed_ns"] * 1e9
	l.rate = l.Load * saturation
	_, err = web{}.load(ctx, l, 0, l.WarmUp, l.Seed)
	return saturation, err
}

func (web) load(ctx context.Context, l *ladder, warmUp, seconds float64, seed int64) (map[string]float64, error) {
	if l.Load == 1 {
		return web{}.offer(ctx, l, closedLoop, warmUp, seconds, seed)
	}
	return web{}.offer(ctx, l, l.rate, warmUp, seconds, seed)
}

// closedLoop, as a rate, sends a request for each answer (the load folder's web.c).
const closedLoop = 0

func (web) offer(ctx context.Context, l *ladder, rate, warmUp, seconds float64, seed int64) (map[string]float64, error) {
	iterations := l.StageIterations * uint64(webTime) / uint64(stageTime)
	return l.runService(ctx, "web", rate, iterations, warmUp, seconds, seed, bit(l.Bursty), l.CPUs, l.latencyFile())
}
