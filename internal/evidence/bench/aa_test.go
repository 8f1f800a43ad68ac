package bench_test

import (
	"fmt"
	"math"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
)

// study has one seed for each p99 at 1 spinner; at 0 spinners it is always 10 ms. If twice is given, cpuidle runs again.
func study(t *testing.T, p99 []float64, twice []float64) *bench.AA {
	t.Helper()
	var records []bench.Record
	for i, v := range p99 {
		r := benchtest.Plain("chain", int64(i+1), map[string][]bench.Step{"cpuidle": {benchtest.Step(0, 10, 0), benchtest.Step(1, v, 1000)}})
		if twice != nil {
			r.Arms = append(r.Arms, bench.Arm{Arm: "cpuidle", Preempt: "full", Steps: []bench.Step{benchtest.Step(0, 10, 0), benchtest.Step(1, twice[i], 1000)}})
		}
		records = append(records, r)
	}
	aa, err := bench.NewAA([]*bench.Pooled{pool(t, records...)})
	if err != nil {
		t.Fatal(err)
	}
	return aa
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestStudySpread(t *testing.T) {
	aa := study(t, []float64{10, 11, 12}, []float64{10, 11, 12})
	f := aa.Groups[0].Cells[1].Figures[2]
	if f.Figure != bench.P99 || f.Min != 10 || f.Median != 11 || f.Max != 12 || f.Windows != 3 {
		t.Errorf("%+v", f)
	}
	// The six ratios run from 10/12 to 12/10; the percentiles lie an eighth of the way to the next one.
	if u := f.Unpaired; u.Pairs != 6 || !near(u.Low, 10./12+0.125*(10./11-10./12)) || !near(u.High, 1.2-0.125*(1.2-1.1)) {
		t.Errorf("unpaired %+v", *u)
	}
	if p := f.Paired; p.Low != 1 || p.High != 1 || p.Pairs != 3 { // equal runs, whatever the seeds do
		t.Errorf("paired %+v", *p)
	}
}

func TestStudyLengths(t *testing.T) {
	const u = 10. / 12 * 1.5 / 1.5 // what two seeds of 10 and 12 ms give: ratios 10/12 and 12/10, percentiles 2.5 % inside
	high := 1.2 - 0.025*(1.2-u)
	low := u + 0.025*(1.2-u)
	h := math.Max(math.Abs(math.Log(low)), math.Log(high))
	aa := study(t, []float64{10, 12}, nil)
	lengths := map[string]bench.AALength{}
	for _, l := range aa.Groups[0].Lengths {
		lengths[fmt.Sprintf("%s@%d", l.Bar, l.Background)] = l
	}
	// Over the floor the spread of step 0, which is none here, counts half.
	floor := lengths["chain-p99-floor@1"]
	if want := 10 * math.Pow(h/math.Sqrt2/math.Log(1.25), 2); !near(floor.Seconds, math.Max(want, 10)) {
		t.Errorf("over the floor: %+v, want %v s and not less than 1000 requests take", floor, want)
	}
	stock := lengths["p99-stock@1"]
	want := 10 * math.Pow(h/math.Log(1.05), 2)
	if !near(stock.Seconds, want) || stock.Limit != 1.05 || stock.Seeds != int(math.Ceil(want/10)) || !near(stock.SecondsOf3, want/3) {
		t.Errorf("over stock: %+v, want %v s", stock, want)
	}
	if _, ok := lengths["memcached-p99-floor@1"]; ok {
		t.Error("a bar of another scenario")
	}
	if _, ok := lengths["alone-p99-stock@1"]; ok {
		t.Error("a bar of step 0 at step 1")
	}
}

func TestABarInsideTheSpreadBecomesTheSpread(t *testing.T) {
	aa := study(t, []float64{10, 11, 12}, []float64{11, 11, 11}) // paired ratios 1.1, 1, 0.92
	records := func(n int64, p99 float64) []*bench.Pooled {
		var out []bench.Record
		for seed := range n {
			out = append(out, benchtest.Plain("chain", seed+1, map[string][]bench.Step{
				"cpuidle": ladder(nil), "temper": ladder(func(_, l *bench.Step) { l.P99 = p99 }),
			}))
		}
		return []*bench.Pooled{pool(t, out...)}
	}
	one := find(t, bench.Check(records(1, 10.5), aa), "p99-stock", 1)
	if !one.InsideSpread || !one.Pass || one.Applied <= 1.05 || one.Limit != 1 {
		t.Errorf("one seed: %+v", one)
	}
	if want := fmt.Sprintf("1.050, allowed %.3f (the A/A spread; the bar of 1.00 lies inside it)", one.Applied); one.Reason != want {
		t.Errorf("reason %q, want %q", one.Reason, want)
	}
	four := find(t, bench.Check(records(4, 10.5), aa), "p99-stock", 1)
	if !near(math.Log(four.Applied)*2, math.Log(one.Applied)) {
		t.Errorf("four seeds allow %v, which is not the root of one seed's %v", four.Applied, one.Applied)
	}
	if wide := find(t, bench.Check(records(1, 10.5), aa), "chain-p99-floor", 1); wide.InsideSpread || wide.Applied != 1.25 {
		t.Errorf("a bar outside the spread was moved: %+v", wide)
	}
	other := records(1, 10.5)
	other[0].Conditions.Kernel = "7.0.13"
	if r := find(t, bench.Check(other, aa), "p99-stock", 1); r.SpreadHigh != 0 || r.Pass {
		t.Errorf("the spread of another kernel was used: %+v", r)
	}
}

func TestStudyRefuses(t *testing.T) {
	for want, r := range map[string][]bench.Record{
		"chain, 2 CPUs: an A/A study needs at least 2 seeds and has 1": {benchtest.Plain("chain", 1, map[string][]bench.Step{"cpuidle": ladder(nil)})},
		"chain, 2 CPUs: an A/A study needs a stock arm (one of eevdf, eevdf-full, cpuidle and cpuidle-lazy)": {
			benchtest.Plain("chain", 1, map[string][]bench.Step{"temper": ladder(nil)}),
			benchtest.Plain("chain", 2, map[string][]bench.Step{"temper": ladder(nil)}),
		},
	} {
		if _, err := bench.NewAA([]*bench.Pooled{pool(t, r...)}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
