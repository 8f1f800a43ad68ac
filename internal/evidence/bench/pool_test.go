package bench_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
)

func seeds(t *testing.T, n int64, scenario string, arms ...string) []bench.Record {
	t.Helper()
	var out []bench.Record
	for seed := range n {
		out = append(out, benchtest.Record(t, scenario, seed+1, arms...))
	}
	return out
}

func pool(t *testing.T, records ...bench.Record) *bench.Pooled {
	t.Helper()
	p, err := bench.Pool(records)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPoolRefusesOtherPlans(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*bench.Record)
		want   string
	}{
		"scenario": {func(r *bench.Record) { r.Scenario = "memcached" }, `seeds 1 and 2 cannot be pooled: scenario is "chain" in one and "memcached" in the other`},
		"kernel":   {func(r *bench.Record) { r.Kernel = "7.0.13" }, `seeds 1 and 2 cannot be pooled: kernel is "6.18.15" in one and "7.0.13" in the other`},
		"window":   {func(r *bench.Record) { r.Seconds = 4 }, `seeds 1 and 2 cannot be pooled: seconds is 10 in one and 4 in the other`},
		"rate":     {func(r *bench.Record) { r.RateRPS = 99 }, `seeds 1 and 2 cannot be pooled: rate_rps is 120 in one and 99 in the other`},
		"guest":    {func(r *bench.Record) { r.Hashes.Guest = "ee" }, `seeds 1 and 2 cannot be pooled: hashes.guest is "cc33" in one and "ee" in the other`},
		"bpf":      {func(r *bench.Record) { r.Hashes.BPF = "" }, `seeds 1 and 2 cannot be pooled: hashes.bpf is "dd44" in one and "" in the other`},
		"quantum":  {func(r *bench.Record) { r.Machine.QuantumUS = 17 }, `seeds 1 and 2 cannot be pooled: machine.quantum_us is 50 in one and 17 in the other`},
		"arms":     {func(r *bench.Record) { r.Arms = r.Arms[1:] }, `seeds 1 and 2 cannot be pooled: arms is "eevdf(lazy) 0,1,2,4,8; temper(full) 0,1,2,4,8" in one and "temper(full) 0,1,2,4,8" in the other`},
		"steps":    {func(r *bench.Record) { r.Arms[0].Steps = r.Arms[0].Steps[:2] }, `seeds 1 and 2 cannot be pooled: arms is "eevdf(lazy) 0,1,2,4,8; temper(full) 0,1,2,4,8" in one and "eevdf(lazy) 0,1; temper(full) 0,1,2,4,8" in the other`},
		"seed":     {func(r *bench.Record) { r.Seed = 1 }, `two records have seed 1: a run counted twice is no evidence`},
		"schema":   {func(r *bench.Record) { r.Schema = "v0" }, `seed 2: schema is "v0", want "temper.dev/record/v1"`},
		"no arms":  {func(r *bench.Record) { r.Arms = nil }, `seed 2: the record has no arms`},
		"no steps": {func(r *bench.Record) { r.Arms[1].Steps = nil }, `seed 2: arm temper has no steps`},
		"broken histogram": {func(r *bench.Record) { r.Arms[0].Steps[1].Histogram = "!" },
			"arm eevdf, 1 spinners: seed 2: histogram: illegal base64 data at input byte 0"},
		"measured preemption may differ": {func(r *bench.Record) { r.Machine.PreemptionMS = 7 }, ""},
		"order of arms may differ":       {func(r *bench.Record) { slices.Reverse(r.Arms) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			records := seeds(t, 2, "chain", "eevdf", "temper")
			test.change(&records[1])
			_, err := bench.Pool(records)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A record field that is neither a condition nor measured would let Pool mix what differs.
func TestConditionsCoverTheRecord(t *testing.T) {
	measured := []string{"Schema", "Seed", "SaturationRPS", "CPURates", "CPURatesAlone", "RateRPS", "Arms"}
	conditions := reflect.TypeFor[bench.Conditions]()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[bench.Record]()) {
		if _, ok := conditions.FieldByName(f.Name); ok == slices.Contains(measured, f.Name) {
			t.Errorf("Record.%s must be either in Conditions or in this test's list of what is measured", f.Name)
		}
	}
}

func TestPooledPercentilesAreThoseOfAllRequests(t *testing.T) {
	records := seeds(t, 3, "chain", "temper")
	all := hdrhistogram.New(1000, 60_000_000_000, 3)
	for _, r := range records {
		h, err := hdrhistogram.Decode([]byte(r.Arms[0].Steps[2].Histogram))
		if err != nil {
			t.Fatal(err)
		}
		all.Merge(h)
	}
	f := pool(t, records...).Arms[0].Cells[2].Figures
	for _, q := range []struct{ percent, got float64 }{{50, f.P50}, {90, f.P90}, {99, f.P99}, {99.9, f.P999}} {
		if want := float64(all.ValueAtPercentile(q.percent)) / 1e6; q.got != want {
			t.Errorf("p%v = %v, want %v", q.percent, q.got, want)
		}
	}
}

// Whatever the seeds hold, a pooled percentile lies between the seeds' own, and an interval's ends are in order.
func TestPooledPercentilesLieBetweenTheSeeds(t *testing.T) {
	start := time.Now().UnixNano()
	t.Logf("seed %d", start)
	random := rand.New(rand.NewPCG(uint64(start), 0))
	for range 20 {
		var records []bench.Record
		first := random.Int64N(1 << 40)
		for i := range 2 + random.Int64N(4) {
			records = append(records, benchtest.Record(t, "chain", first+i, "cpuidle", "temper"))
		}
		p := pool(t, records...)
		for _, row := range p.Rows() {
			low, high := row.Cell.Windows[0].P99, row.Cell.Windows[0].P99
			for _, w := range row.Cell.Windows {
				low, high = min(low, w.P99), max(high, w.P99)
			}
			if f := row.Cell.Figures; f.P99 < low || f.P99 > high {
				t.Errorf("seed %d: pooled p99 %v outside %v to %v", start, f.P99, low, high)
			}
			if r := p.OverFloor(row.Cell, bench.P99); r.Low > r.High || r.Low <= 0 {
				t.Errorf("seed %d: interval %+v", start, r)
			}
		}
	}
}

func TestPoolIsDeterministic(t *testing.T) {
	var texts [2]string
	for i := range texts {
		records := seeds(t, 4, "memcached", "cpuidle", "temper")
		if i == 1 {
			slices.Reverse(records) // the order of the files must not matter either
		}
		s, err := bench.NewSummary(records, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		t.Error("equal records give two summaries")
	}
}

func TestInvalidWindowsCountForNothingAndStay(t *testing.T) {
	records := seeds(t, 3, "chain", "eevdf", "temper")
	clean := pool(t, records[0], records[2])
	bad := &records[1].Arms[1].Steps[3]
	bad.Valid, bad.InvalidReason, bad.BackgroundWork = false, "client was throttled", 1<<40
	p := pool(t, records...)
	got, want := p.Arm("temper").Cell(4, 0), clean.Arm("temper").Cell(4, 0)
	if *got.Figures != *want.Figures {
		t.Errorf("figures %+v, want those of the two valid windows %+v", *got.Figures, *want.Figures)
	}
	if text := got.InvalidText(); text != "1 of 3 windows invalid: seed 2: client was throttled" {
		t.Error(text)
	}
	if share := p.WorkShare(p.Arm("eevdf").Cell(4, 0)); share.Value < 0.9 {
		t.Errorf("the invalid window's work is the measure: share %v", share.Value)
	}
}

func TestFloorIsTheSmallerOfTemperAndStock(t *testing.T) {
	for name, test := range map[string]struct {
		arms map[string]float64 // p99 at step 0
		want float64
	}{
		"temper":                 {map[string]float64{"temper": 8, "eevdf": 9, "cpuidle": 10}, 8},
		"stock":                  {map[string]float64{"temper": 11, "eevdf": 9, "cpuidle": 10}, 9},
		"a peer does not set it": {map[string]float64{"temper": 11, "eevdf": 9, "scx_layered": 3}, 9},
	} {
		arms := map[string][]bench.Step{}
		for arm, p99 := range test.arms {
			arms[arm] = []bench.Step{benchtest.Step(0, p99, 0), benchtest.Step(1, 1, 10)}
		}
		if got := pool(t, benchtest.Plain("chain", 1, arms)).Floor(bench.P99); got != test.want {
			t.Errorf("%s: floor %v, want %v", name, got, test.want)
		}
	}
}

func TestUpAndDownLadderKeepsBothVisits(t *testing.T) {
	p := pool(t, benchtest.Plain("chain", 1, map[string][]bench.Step{
		"temper": {benchtest.Step(0, 8, 0), benchtest.Step(4, 9, 10), benchtest.Step(0, 12, 0)},
	}))
	if got := p.Arm("temper").Cells[2].Label(); got != "0 #2" {
		t.Errorf("label %q", got)
	}
	if got := p.OverFloor(p.Arm("temper").Cell(0, 1), bench.P99).Value; got != 1.5 {
		t.Errorf("second visit over the floor %v, want 1.5", got)
	}
}
