package ladder

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"temper.dev/temper/lab/plan"
)

// service is the latency-critical side of a scenario.
type service interface {
	// background is what the workers beside it run.
	background() worker
	// threads is what its threads are called.
	threads() string
	// calibrate brings the service up, finds the rate to offer, warms up, and returns the
	// measured saturation in requests a second, or 0 where the rate is fixed.
	calibrate(context.Context, *ladder) (float64, error)
	// load offers l.rate for warmUp and then seconds of guest time; only the second part counts.
	// The generator leaves its latencies in l.latencyFile().
	load(ctx context.Context, l *ladder, warmUp, seconds float64, seed int64) (map[string]float64, error)
}

func newService(p plan.Plan) (service, error) {
	if p.Workload != nil {
		return &workload{Workload: p.Workload}, nil
	}
	switch p.Scenario {
	case plan.Chain:
		return chain{}, nil
	case plan.Memcached:
		return memcached{}, nil
	case plan.Web:
		return web{}, nil
	}
	return nil, fmt.Errorf("no scenario %q", p.Scenario)
}

// runGenerator runs a load generator and reads its figures, "name=value" separated by spaces.
func (l *ladder) runGenerator(ctx context.Context, name string, args ...any) (map[string]float64, error) {
	cmd, err := l.command(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	return figuresOf(cmd, name)
}

// runService runs a load generator that starts its service itself, under the arm's policy for it.
func (l *ladder) runService(ctx context.Context, name string, args ...any) (map[string]float64, error) {
	cmd, err := l.command(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	underPolicy(cmd, l.arm.ServicePolicy)
	return figuresOf(cmd, name)
}

func figuresOf(cmd *exec.Cmd, name string) (map[string]float64, error) {
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	figures := map[string]float64{}
	for _, field := range strings.Fields(string(out)) {
		key, value, _ := strings.Cut(field, "=")
		if figures[key], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("%s printed %q", name, out)
		}
	}
	return figures, nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
