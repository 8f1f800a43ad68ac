package bench

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// synthetic makes a plausible record: arms differ in how latency and work depend on the spinners, seeds in their noise.
// Nothing in it was measured.
func synthetic(t *testing.T, scenario string, seed int64, arms ...string) Record {
	t.Helper()
	r := Record{
		Schema: Schema, Scenario: scenario, Kernel: "6.18.15", Seed: seed, CPUs: 2, Seconds: 10, RateRPS: 120,
		Machine: Machine{Kind: "lab", MIPSPerCPU: 167, QuantumUS: 50, Emulator: "10.0.2", PreemptionMS: 0.1},
		Hashes:  Hashes{Kernel: "aa11", Emulator: "bb22", Guest: "cc33", BPF: "dd44"},
	}
	if scenario == memcached {
		r.Load, r.SaturationRPS = 0.5, 3000+float64(seed)
		r.RateRPS = r.SaturationRPS / 2
	}
	random := rand.New(rand.NewPCG(uint64(seed), 7))
	for i, name := range arms {
		a := Arm{Arm: name, Preempt: "full"}
		if name == "eevdf" {
			a.Preempt = "lazy"
		}
		for _, background := range []int{0, 1, 2, 4, 8} {
			a.Steps = append(a.Steps, syntheticStep(t, random, scenario, name, i, background))
		}
		r.Arms = append(r.Arms, a)
	}
	return r
}

func syntheticStep(t *testing.T, random *rand.Rand, scenario, arm string, place, background int) Step {
	t.Helper()
	base, tail, cores := 4.4, 1.0, 1.0
	if scenario == memcached {
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
	at := func(percent float64) float64 { return float64(h.ValueAtPercentile(percent)) / nsPerMS }
	return Step{
		Background: background, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / nsPerMS,
		Mean: h.Mean() / nsPerMS, Requests: 1200, BackgroundWork: uint64(1e6 * cores * loaded * (1 + 0.005*random.Float64())),
		BackgroundCores: cores * loaded, ServiceCores: 0.5, IdleCores: 2 - cores*loaded/2, Histogram: string(encoded),
		Scheduler: map[bool]string{true: "temper"}[arm == ours], Valid: true,
	}
}
