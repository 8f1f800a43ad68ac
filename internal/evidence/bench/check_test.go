package bench_test

import (
	"math"
	"strings"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
)

// ladder is the steps of an arm at 0 and 1 spinners, with a p99 of 10 ms and a p50 of 5 ms unless change says otherwise.
func ladder(change func(alone, loaded *bench.Step)) []bench.Step {
	steps := []bench.Step{benchtest.Step(0, 10, 0), benchtest.Step(1, 10, 1000)}
	if change != nil {
		change(&steps[0], &steps[1])
	}
	return steps
}

func find(t *testing.T, results []bench.BarResult, bar string, background int) bench.BarResult {
	t.Helper()
	for _, r := range results {
		if r.Bar == bar && r.Background == background {
			return r
		}
	}
	t.Fatalf("no result for %s at %d spinners", bar, background)
	return bench.BarResult{}
}

func TestCheckAtTheLimit(t *testing.T) {
	for _, test := range []struct {
		name, scenario, bar string
		background          int
		stock               func(alone, loaded *bench.Step)
		holds, breaks       func(alone, loaded *bench.Step) // Temper's
		measured            float64                         // where it breaks
	}{
		{"p50 over the floor", "chain", "chain-p50-floor", 1, nil,
			func(_, l *bench.Step) { l.P50 = 5.4 }, func(_, l *bench.Step) { l.P50 = 5.41 }, 1.082},
		{"p99 over the floor", "chain", "chain-p99-floor", 1, nil,
			func(_, l *bench.Step) { l.P99 = 12.5 }, func(_, l *bench.Step) { l.P99 = 12.6 }, 1.26},
		{"Temper's own slow baseline does not help", "chain", "chain-p99-floor", 1, nil,
			func(a, l *bench.Step) { a.P99, l.P99 = 14, 12.5 }, func(a, l *bench.Step) { a.P99, l.P99 = 14, 12.6 }, 1.26},
		{"a fast baseline of Temper's counts", "chain", "chain-p99-floor", 1, nil,
			func(a, l *bench.Step) { a.P99, l.P99 = 8, 10 }, func(a, l *bench.Step) { a.P99, l.P99 = 8, 10.4 }, 1.3},
		{"p99 over stock at the same step", "chain", "p99-stock", 1, func(_, l *bench.Step) { l.P99 = 11 },
			func(_, l *bench.Step) { l.P99 = 11 }, func(_, l *bench.Step) { l.P99 = 11.11 }, 1.01},
		{"memcached p99 over the floor", "memcached", "memcached-p99-floor", 1, nil,
			func(_, l *bench.Step) { l.P99 = 13 }, func(_, l *bench.Step) { l.P99 = 13.1 }, 1.31},
		{"p50 alone", "memcached", "alone-p50-stock", 0, nil,
			func(a, _ *bench.Step) { a.P50 = 5.15 }, func(a, _ *bench.Step) { a.P50 = 5.2 }, 1.04},
		{"p99 alone", "chain", "alone-p99-stock", 0, nil,
			func(a, _ *bench.Step) { a.P99 = 11 }, func(a, _ *bench.Step) { a.P99 = 11.1 }, 1.11},
		{"background work", "chain", "work-most", 1, nil,
			func(_, l *bench.Step) { l.BackgroundWork = 970 }, func(_, l *bench.Step) { l.BackgroundWork = 960 }, 0.96},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(temper func(a, l *bench.Step)) bench.BarResult {
				r := benchtest.Plain(test.scenario, 1, map[string][]bench.Step{"cpuidle": ladder(test.stock), "temper": ladder(temper)})
				return find(t, bench.Check([]*bench.Pooled{pool(t, r)}, nil), test.bar, test.background)
			}
			if r := check(test.holds); !r.Pass {
				t.Errorf("at the limit it fails: %s", r.Reason)
			}
			r := check(test.breaks)
			if r.Pass || math.Abs(r.Measured.Value-test.measured) > 1e-9 {
				t.Errorf("beyond the limit: pass %v, measured %v, want %v", r.Pass, r.Measured.Value, test.measured)
			}
		})
	}
}

func TestPreemptionsWidenTheBarOfMemcached(t *testing.T) {
	for _, test := range []struct{ preemption, limit float64 }{{0, 1.30}, {1, 1.30}, {2, 1.40}} {
		r := benchtest.Plain("memcached", 1, map[string][]bench.Step{"cpuidle": ladder(nil), "temper": ladder(nil)})
		r.Machine.PreemptionMS = test.preemption
		got := find(t, bench.Check([]*bench.Pooled{pool(t, r)}, nil), "memcached-p99-floor", 1)
		if math.Abs(got.Limit-test.limit) > 1e-9 {
			t.Errorf("preemption of %v ms on a floor of 10 ms: limit %v, want %v", test.preemption, got.Limit, test.limit)
		}
	}
}

func TestBestStockIsChosenForEachFigure(t *testing.T) {
	r := benchtest.Plain("chain", 1, map[string][]bench.Step{
		"eevdf":   ladder(func(_, l *bench.Step) { l.P99, l.P50, l.BackgroundWork = 30, 4.9, 1100 }),
		"cpuidle": ladder(func(_, l *bench.Step) { l.P99, l.P50, l.BackgroundWork = 12, 5.5, 800 }),
		"temper":  ladder(func(_, l *bench.Step) { l.P99, l.BackgroundWork = 11, 1078 }),
	})
	results := bench.Check([]*bench.Pooled{pool(t, r)}, nil)
	for bar, want := range map[string]struct {
		best  string
		ratio float64 // best stock's by the bar's measure
		over  float64 // Temper's over the arm that is best overall, cpuidle
	}{
		"chain-p99-floor": {"cpuidle", 1.2, 11.0 / 12}, "p99-stock": {"cpuidle", 1, 11.0 / 12},
		"chain-p50-floor": {"eevdf", 0.98, 5 / 5.5}, "work-most": {"eevdf", 1, 1078.0 / 800},
	} {
		got := find(t, results, bar, 1)
		if got.BestStock != want.best || math.Abs(got.BestStockRatio-want.ratio) > 1e-9 {
			t.Errorf("%s: best stock %s at %v, want %s at %v", bar, got.BestStock, got.BestStockRatio, want.best, want.ratio)
		}
		if got.BestOverall != "cpuidle" || math.Abs(got.OverBestOverall-want.over) > 1e-9 {
			t.Errorf("%s: over %s %v, want over cpuidle %v", bar, got.BestOverall, got.OverBestOverall, want.over)
		}
	}
}

// An arm that gains work by giving the tail away sets no bar for one that keeps it.
func TestWorkIsHeldAgainstArmsThatKeepTheTail(t *testing.T) {
	r := benchtest.Plain("chain", 1, map[string][]bench.Step{
		"eevdf":   ladder(func(_, l *bench.Step) { l.P99, l.BackgroundWork = 30, 2000 }),
		"cpuidle": ladder(func(_, l *bench.Step) { l.P99, l.BackgroundWork = 12.5, 1000 }),
		"temper":  ladder(func(_, l *bench.Step) { l.P99, l.BackgroundWork = 11, 960 }),
	})
	results := bench.Check([]*bench.Pooled{pool(t, r)}, nil)
	if got := find(t, results, "work-keepers", 1); got.Pass || got.Against != "cpuidle" || math.Abs(got.Measured.Value-0.96) > 1e-9 {
		t.Errorf("against %s: %v, pass %v", got.Against, got.Measured, got.Pass)
	}
	if got := find(t, results, "work-most", 1); got.Against != "eevdf" {
		t.Errorf("the bar as given is held against %s", got.Against)
	}
}

func TestWhatWasNotMeasuredFails(t *testing.T) {
	invalid := func(_, l *bench.Step) { l.Valid, l.InvalidReason = false, "foreign load" }
	for name, test := range map[string]struct {
		stock, temper func(a, l *bench.Step)
		reason        string
	}{
		"temper": {nil, invalid, "not measured: invalid window: foreign load"},
		"stock":  {invalid, nil, "not measured: no valid window of the best stock arm at that step"},
	} {
		r := benchtest.Plain("chain", 1, map[string][]bench.Step{"cpuidle": ladder(test.stock), "temper": ladder(test.temper)})
		if got := find(t, bench.Check([]*bench.Pooled{pool(t, r)}, nil), "p99-stock", 1); got.Pass || got.Reason != test.reason {
			t.Errorf("%s: pass %v, %q", name, got.Pass, got.Reason)
		}
	}
}

func TestEveryArmOfTempersIsChecked(t *testing.T) {
	r := benchtest.Plain("chain", 1, map[string][]bench.Step{"cpuidle": ladder(nil), "temper": ladder(nil), "temper-full": ladder(nil)})
	arms := map[string]int{}
	for _, result := range bench.Check([]*bench.Pooled{pool(t, r)}, nil) {
		arms[result.Arm]++
	}
	if arms["temper"] != 10 || arms["temper-full"] != 10 || len(arms) != 2 { // 3 bars at 2 steps, 2 at step 0, 2 at step 1
		t.Errorf("checks by arm: %v", arms)
	}
}

func TestVerdict(t *testing.T) {
	good := ladder(func(_, l *bench.Step) { l.BackgroundWork = 1000 })
	for name, test := range map[string]struct {
		arms map[string][]bench.Step
		want string
	}{
		"passes": {map[string][]bench.Step{
			"cpuidle": ladder(func(_, l *bench.Step) { l.P99, l.BackgroundWork = 14, 800 }), "temper": good,
		}, "Chain, 2 CPUs: temper keeps p99 lowest under load, at most 1.00 times the floor (cpuidle 1.40). temper gets most background work, at every loaded step at least 100 % of the best arm's. Stock is not good enough at any loaded step. Temper passes all 10 checks of the bars."},
		"stock is as good": {map[string][]bench.Step{"cpuidle": good, "temper": good},
			"Chain, 2 CPUs: cpuidle and temper keep p99 lowest under load, at most 1.00 times the floor. cpuidle and temper get most background work, at every loaded step at least 100 % of the best arm's. Stock is good enough: cpuidle at every loaded step. Temper passes all 10 checks of the bars."},
		"stock is better": {map[string][]bench.Step{"cpuidle": good, "temper": ladder(func(_, l *bench.Step) { l.P99 = 12 })},
			"Chain, 2 CPUs: cpuidle keeps p99 lowest under load, at most 1.00 times the floor (temper 1.20). cpuidle and temper get most background work, at every loaded step at least 100 % of the best arm's. Stock is good enough: cpuidle at every loaded step. Temper fails 1 of 10 checks of the bars: p99 at every step over the best stock arm at that step (temper, chain, 2 CPUs: 1.200 at 1 spinner, allowed 1.000)."},
		"a bar fails twice": {map[string][]bench.Step{
			"cpuidle": ladder(func(_, l *bench.Step) { l.P99 = 14 }), "temper": ladder(func(a, l *bench.Step) { a.P50, l.P50 = 1.1*a.P50, 1.3*l.P50 }),
		}, "Chain, 2 CPUs: temper keeps p99 lowest under load, at most 1.00 times the floor (cpuidle 1.40). cpuidle and temper get most background work, at every loaded step at least 100 % of the best arm's. Stock is not good enough at any loaded step. Temper fails 3 of 10 checks of the bars: p50 at every step over the floor (2 times, worst temper, chain, 2 CPUs: 1.300 at 1 spinner, allowed 1.080), p50 at 0 spinners over the best stock arm at that step (temper, chain, 2 CPUs: 1.100 at 0 spinners, allowed 1.030)."},
		"Temper did not run": {map[string][]bench.Step{"cpuidle": good},
			"Chain, 2 CPUs: cpuidle keeps p99 lowest under load, at most 1.00 times the floor. cpuidle gets most background work, at every loaded step at least 100 % of the best arm's. Stock is good enough: cpuidle at every loaded step. Temper did not run, so no bar was checked."},
		"nothing valid": {map[string][]bench.Step{"cpuidle": ladder(func(a, _ *bench.Step) { a.Valid = false })},
			"Chain, 2 CPUs: no arm has a valid window at every step, so none can be called best. Temper did not run, so no bar was checked."},
	} {
		pools := []*bench.Pooled{pool(t, benchtest.Plain("chain", 1, test.arms))}
		if got := bench.Verdict(pools, bench.Check(pools, nil)); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
	if got := bench.Verdict(nil, nil); !strings.Contains(got, "No ladder") {
		t.Error(got)
	}
}

// One spinner is not "1 spinners", wherever steps are counted.
func TestOneSpinnerIsSingular(t *testing.T) {
	for want, step := range map[string][2]int{"0 spinners": {0, 0}, "1 spinner": {1, 0}, "1 #2 spinner": {1, 1}, "11 spinners": {11, 0}} {
		if got := bench.Spinners(step[0], step[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	r := benchtest.Record(t, "chain", 1, "eevdf", "temper")
	for i := range r.Arms[0].Steps { // good enough beside one spinner only
		stock, ours := &r.Arms[0].Steps[i], r.Arms[1].Steps[i]
		stock.Histogram = ""
		stock.P50, stock.P90, stock.P99, stock.BackgroundWork = ours.P50, ours.P90, ours.P99, ours.BackgroundWork
		if stock.Background > 1 {
			stock.P99 *= 9
		}
	}
	if got := pool(t, r).GoodEnoughText(); got != "eevdf at 1 spinner" {
		t.Errorf("got %q", got)
	}
}
