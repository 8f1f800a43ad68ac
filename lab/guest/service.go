package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"temper.dev/temper/lab/plan"
)

// service is the latency-critical side of a scenario.
type service interface {
	// calibrate brings the service up, finds the rate to offer, warms up, and returns the
	// measured saturation in requests a second, or 0 where the rate is fixed.
	calibrate(context.Context, *ladder) (float64, error)
	// load offers l.rate for warmUp and then seconds of guest time; only the second part counts.
	// The generator leaves its latencies in latencyFile.
	load(ctx context.Context, l *ladder, warmUp, seconds float64, seed int64) (map[string]float64, error)
}

func newService(scenario string) (service, error) {
	switch scenario {
	case plan.Chain:
		return chain{}, nil
	case plan.Memcached:
		return memcached{}, nil
	}
	return nil, fmt.Errorf("no scenario %q", scenario)
}

// runGenerator runs a load generator and reads its figures, "name=value" separated by spaces.
func runGenerator(ctx context.Context, name string, args ...any) (map[string]float64, error) {
	text := make([]string, len(args))
	for i, a := range args {
		text[i] = fmt.Sprint(a)
	}
	cmd := exec.CommandContext(ctx, name, text...)
	cmd.Stderr = os.Stderr
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

// chain is ten services in a row, a fixed amount of computing each.
type chain struct{}

const (
	chainIterations = 5400  // a stage's computing for one request: about 0.4 ms at the lab's speed
	chainRatePerCPU = 60.0  // requests a second: a quarter of the machine
)

func (chain) calibrate(ctx context.Context, l *ladder) (float64, error) {
	if err := writeFile(cgroupRoot+"critical/cgroup.subtree_control", "+cpu"); err != nil {
		return 0, err
	}
	for stage := range 10 {
		if err := os.Mkdir(fmt.Sprintf("%scritical/s%d", cgroupRoot, stage), 0o755); err != nil {
			return 0, err
		}
	}
	l.rate = chainRatePerCPU * float64(l.CPUs)
	_, err := chain{}.load(ctx, l, 0, l.WarmUp, l.Seed)
	return 0, err
}

func (chain) load(ctx context.Context, l *ladder, warmUp, seconds float64, seed int64) (map[string]float64, error) {
	return runGenerator(ctx, "chain", l.rate, chainIterations, warmUp, seconds, seed, bit(l.Bursty), l.CPUs, latencyFile)
}

// memcached is the distribution's, with one thread an application CPU.
type memcached struct{}

func (memcached) calibrate(ctx context.Context, l *ladder) (float64, error) {
	dir, err := os.Open(cgroupRoot + "critical")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	server := exec.CommandContext(ctx, "taskset", "-c", fmt.Sprintf("0-%d", l.CPUs-1),
		"memcached", "-u", "root", "-t", strconv.Itoa(l.CPUs), "-m", "64", "-l", "127.0.0.1")
	server.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return 0, err
	}
	if err := awaitListener("127.0.0.1:11211"); err != nil {
		return 0, err
	}
	figures, err := runGenerator(ctx, "mcload", 0, l.WarmUp/2, l.WarmUp/2, l.Seed, 0, l.CPUs, latencyFile)
	if err != nil {
		return 0, err
	}
	l.rate = l.Load * figures["saturation_rps"]
	_, err = memcached{}.load(ctx, l, 0, l.WarmUp, l.Seed)
	return figures["saturation_rps"], err
}

func (memcached) load(ctx context.Context, l *ladder, warmUp, seconds float64, seed int64) (map[string]float64, error) {
	return runGenerator(ctx, "mcload", l.rate, warmUp, seconds, seed, bit(l.Bursty), l.CPUs, latencyFile)
}
