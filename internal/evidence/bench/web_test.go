package bench_test

import (
	"math"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
)

// webRecord is a service at full load that answers so many requests at 0, 4 and 8 spinners.
func webRecord(arms map[string][3]int) bench.Record {
	steps := map[string][]bench.Step{}
	for arm, requests := range arms {
		for i, background := range []int{0, 4, 8} {
			s := benchtest.Step(background, 10, 1000)
			s.Requests, s.Mean = requests[i], 6
			steps[arm] = append(steps[arm], s)
		}
	}
	r := benchtest.Plain("web", 1, steps)
	r.Load = 1
	return r
}

func TestThroughputAtFullLoadIsHeldAgainstTheSameArmAlone(t *testing.T) {
	p := pool(t, webRecord(map[string][3]int{
		"temper": {1000, 992, 985}, "eevdf": {2000, 1000, 900}, "weight-10000": {3000, 10, 10},
	}))
	results := bench.Check([]*bench.Pooled{p}, nil)
	if len(results) != 2 {
		t.Fatalf("%d results, want Temper's at 4 and 8 spinners: %+v", len(results), results)
	}
	for i, want := range []struct {
		ratio, stock float64
		pass         bool
	}{{0.992, 0.5, true}, {0.985, 0.45, false}} {
		got := results[i]
		if got.Bar != "web-throughput" || got.Arm != "temper" || got.Against != "temper" || math.Abs(got.Measured.Value-want.ratio) > 1e-9 || got.Pass != want.pass {
			t.Errorf("got %+v", got)
		}
		if got.BestStock != "eevdf" || math.Abs(got.BestStockRatio-want.stock) > 1e-9 {
			t.Errorf("best stock %s at %g, want eevdf at %g of itself alone", got.BestStock, got.BestStockRatio, want.stock)
		}
	}
	if got := results[0].Text; got != "service throughput at every step >= 1 over the same arm at 0 spinners: at least 0.99" {
		t.Error(got)
	}
}

func TestBelowFullLoadThroughputHasNoBar(t *testing.T) {
	r := webRecord(map[string][3]int{"temper": {1000, 10, 10}})
	r.Load = 0.5
	pools := []*bench.Pooled{pool(t, r)}
	results := bench.Check(pools, nil)
	if len(results) != 0 {
		t.Errorf("got %+v", results)
	}
	if got := bench.Verdict(pools, results); !strings.HasSuffix(got, " No bar is about this scenario at this load.") {
		t.Error(got)
	}
}

// Without a bar on p99 nothing says what would be good enough.
func TestVerdictOfWebCallsNoStockGoodEnough(t *testing.T) {
	p := pool(t, webRecord(map[string][3]int{"temper": {1000, 992, 990}, "eevdf": {2000, 1000, 900}}))
	got := bench.Verdict([]*bench.Pooled{p}, bench.Check([]*bench.Pooled{p}, nil))
	if strings.Contains(got, "good enough") || !strings.Contains(got, "Temper passes all 2 checks of the bars") {
		t.Error(got)
	}
}

func TestTableOfWebHasMeanAndThroughput(t *testing.T) {
	var b strings.Builder
	if err := bench.WriteTable(&b, benchtest.Record(t, "web", 1, "eevdf", "weight-1", "temper")); err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "web.txt", b.String())
}

// Requests over the window's length, and means, pool over seeds as work does.
func TestThroughputIsPooled(t *testing.T) {
	first, second := webRecord(map[string][3]int{"temper": {1000, 900, 900}}), webRecord(map[string][3]int{"temper": {1200, 1000, 1000}})
	second.Seed = 2
	p := pool(t, first, second)
	rows := p.Rows()
	if got := rows[1].Cell.Figures.Requests; got != 950 {
		t.Errorf("got %v requests", got)
	}
	text := p.RowText(rows[1])
	if got := strings.Join(text[len(text)-4:], " "); got != "6.00 1.00 95 0.86" {
		t.Errorf("got %q", got)
	}
}
