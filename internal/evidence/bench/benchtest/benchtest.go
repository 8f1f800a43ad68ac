// Package benchtest makes records for tests. Nothing in them was measured.
package benchtest

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"temper.dev/temper/internal/evidence/bench"
)

// Record makes a plausible record: arms differ in how latency and work depend on the spinners, seeds in their noise.
func Record(t *testing.T, scenario string, seed int64, arms ...string) bench.Record {
	t.Helper()
	r := bench.Record{
		Schema: bench.Schema, Scenario: scenario, Kernel: "6.18.15", Seed: seed, CPUs: 2, Seconds: 10, RateRPS: 120,
		Machine: bench.Machine{Kind: "lab", MIPSPerCPU: 167, QuantumUS: 50, Emulator: "10.0.2", PreemptionMS: 0.1},
		Hashes:  bench.Hashes{Kernel: "aa11", Emulator: "bb22", Guest: "cc33", BPF: "dd44"},
	}
	if scenario == "memcached" {
		r.Load, r.SaturationRPS = 0.5, 240+float64(seed)
		r.RateRPS = r.SaturationRPS / 2
	}
	if scenario == "web" {
		r.Load, r.SaturationRPS, r.RateRPS = 1, 120, 120
	}
	random := rand.New(rand.NewPCG(uint64(seed), 7))
	for _, name := range arms {
		a := bench.Arm{Arm: name, Preempt: "full"}
		if name == "eevdf" {
			a.Preempt = "lazy"
		}
		for _, background := range []int{0, 1, 2, 4, 8} {
			a.Steps = append(a.Steps, step(t, random, scenario, name, background))
		}
		r.Arms = append(r.Arms, a)
	}
	return r
}

func step(t *testing.T, random *rand.Rand, scenario, arm string, background int) bench.Step {
	t.Helper()
	base, tail, cores := 4.4, 1.0, 1.0
	if scenario == "memcached" {
		base = 0.16
	}
	loaded := float64(min(background, 2))
	switch {
	case background == 0:
	case arm == "eevdf":
		base, tail = base*1.7, 2.2
	case arm == "cpuidle":
		tail, cores = 1.0+0.5/float64(background), 0.8+0.02*loaded
	default:
		base, tail = base*1.02, 1.08
	}
	h := hdrhistogram.New(1000, 60_000_000_000, 3)
	for range 1200 {
		ms := base * (1 + tail*0.25*random.ExpFloat64()*math.Abs(random.NormFloat64()))
		if err := h.RecordValue(int64(ms * 1e6)); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	at := func(percent float64) float64 { return float64(h.ValueAtPercentile(percent)) / 1e6 }
	return bench.Step{
		Background: background, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1e6,
		Mean: h.Mean() / 1e6, Requests: 1200, BackgroundWork: uint64(1e6 * cores * loaded * (1 + 0.005*random.Float64())),
		BackgroundCores: cores * loaded, ServiceCores: 0.5, IdleCores: 2 - cores*loaded/2, Histogram: string(encoded),
		Scheduler: map[bool]string{true: "temper"}[arm == "temper"], Valid: true,
	}
}

// Plain makes a record of two CPUs without histograms: latency and work as given, one entry a step, for each arm.
func Plain(scenario string, seed int64, arms map[string][]bench.Step) bench.Record {
	r := bench.Record{
		Schema: bench.Schema, Scenario: scenario, Kernel: "6.18.15", Seed: seed, CPUs: 2, Seconds: 10, RateRPS: 100,
		Machine: bench.Machine{Kind: "lab"},
	}
	for _, name := range slices.Sorted(maps.Keys(arms)) {
		r.Arms = append(r.Arms, bench.Arm{Arm: name, Preempt: "full", Steps: slices.Clone(arms[name])})
	}
	return r
}

// Step is a valid window with a p50 of half the p99.
func Step(background int, p99 float64, work uint64) bench.Step {
	return bench.Step{Background: background, P50: p99 / 2, P90: p99 * 0.8, P99: p99, BackgroundWork: work, Requests: 1000, Valid: true}
}
