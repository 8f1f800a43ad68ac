package ladder

import (
	"context"
	"strconv"

	"temper.dev/temper/lab/plan"
)

// memcached is the distribution's, with one thread an application CPU.
type memcached struct{}

// port is not memcached's own: a host may run one already.
const port = 11411

func (memcached) background() worker { return spinner }

func (memcached) threads() string { return "mc-worker" }

func (memcached) calibrate(ctx context.Context, l *ladder) (float64, error) {
	program, err := l.Find("memcached")
	if err != nil {
		return 0, err
	}
	server, err := l.serviceCommand(ctx, program, "-u", "root", "-t", l.CPUs, "-m", 64, "-l", "127.0.0.1", "-p", port)
	if err != nil {
		return 0, err
	}
	if err := l.startIn("critical", server); err != nil {
		return 0, err
	}
	if err := awaitListener("tcp", "127.0.0.1:"+strconv.Itoa(port)); err != nil {
		return 0, err
	}
	figures, err := l.memcachedClient(ctx, 0, l.WarmUp/2, l.WarmUp/2, l.Seed, false)
	if err != nil {
		return 0, err
	}
	l.rate = l.Load * figures["saturation_rps"]
	_, err = memcached{}.load(ctx, l, 0, l.WarmUp, l.Seed)
	return figures["saturation_rps"], err
}

func (memcached) load(ctx context.Context, l *ladder, warmUp, seconds float64, seed int64) (map[string]float64, error) {
	return l.memcachedClient(ctx, l.rate, warmUp, seconds, seed, l.Bursty)
}

// memcachedClient offers a rate, or with rate 0 as much as is answered.
func (l *ladder) memcachedClient(ctx context.Context, rate, warmUp, seconds float64, seed int64, bursty bool) (map[string]float64, error) {
	last := l.CPUs + plan.GeneratorCPUs(l.CPUs) - 1
	return l.runGenerator(ctx, "mcload", port, rate, warmUp, seconds, seed, bit(bursty), l.CPUs, last, l.latencyFile())
}
