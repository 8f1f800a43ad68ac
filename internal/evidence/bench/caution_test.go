package bench_test

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
)

// What a reader has to know before he believes the figures of a service that nobody here has seen.
func TestCautions(t *testing.T) {
	const saturated, few = "it is saturated", "requests were answered in one of the steps"
	for _, c := range []struct {
		what   string
		change func(alone, loaded *bench.Step)
		load   float64
		wants  []string
	}{
		{"all is well", func(_, _ *bench.Step) {}, 0.5, nil},
		{"fewer answers than chance explains", func(a, _ *bench.Step) { a.Requests = 850 }, 0.5, []string{saturated, "Only 850 " + few + ", and p99 rests on 8 of them"}},
		{"as few as chance explains", func(a, _ *bench.Step) { a.Requests = 870 }, 0.5, []string{few}},
		{"all CPUs are used", func(a, _ *bench.Step) { a.ServiceCores = 1.99 }, 0.5, []string{"answers 100 of 100 requests a second, and uses 1.99 of 2 CPUs (temper): " + saturated}},
		{"nearly all are", func(a, _ *bench.Step) { a.ServiceCores = 1.97 }, 0.5, nil},
		{"all are, as was asked for", func(a, _ *bench.Step) { a.ServiceCores = 2 }, 1, nil},
		{"beside background work the CPUs are used", func(_, l *bench.Step) { l.ServiceCores = 2 }, 0.5, nil},
		{"in a window that does not count", func(a, _ *bench.Step) { a.ServiceCores, a.Valid = 2, false }, 0.5, nil},
		{"few beside background work", func(_, l *bench.Step) { l.Requests = 999 }, 0.5, []string{"Only 999 " + few}},
	} {
		r := benchtest.Plain("mine", 1, map[string][]bench.Step{"temper": ladder(c.change)})
		r.Load = c.load
		got := strings.Join(pool(t, r).Cautions(), ". ")
		for _, text := range []string{saturated, few} {
			wanted := strings.Contains(strings.Join(c.wants, " "), text)
			if strings.Contains(got, text) != wanted {
				t.Errorf("%s: got %q, want %q in it: %v", c.what, got, text, wanted)
			}
		}
		for _, want := range c.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want %q", c.what, got, want)
			}
		}
	}
}

// A step without background work is not "under load".
func TestVerdictIsOfLoadedSteps(t *testing.T) {
	slowAlone := ladder(func(a, _ *bench.Step) { a.P99 *= 2 })
	p := pool(t, benchtest.Plain("mine", 1, map[string][]bench.Step{"cpuidle": ladder(nil), "temper": slowAlone}))
	if got := bench.Verdict([]*bench.Pooled{p}, nil); !strings.Contains(got, "cpuidle and temper keep p99 lowest under load, at most 1.00 times") {
		t.Error(got)
	}
	p = pool(t, benchtest.Plain("mine", 1, map[string][]bench.Step{"cpuidle": ladder(nil)[:1], "temper": ladder(nil)[:1]}))
	if got := bench.Verdict([]*bench.Pooled{p}, nil); !strings.Contains(got, "no step has background work, so no arm can be called best") {
		t.Error(got)
	}
	if got := p.StandingText("temper"); got != "– / –" {
		t.Errorf("got %q, want none", got)
	}
}
