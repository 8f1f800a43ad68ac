package record

import (
	"testing"
	"time"

	"temper.dev/temper/pathfence/bench/load"
)

const ms = time.Millisecond

func result(path string, at, latency time.Duration, fate load.Fate) load.Result {
	return load.Result{Arrival: load.Arrival{At: at, Path: path}, Late: ms, Latency: latency, Fate: fate}
}

func TestMeasure(t *testing.T) {
	w := Window{From: time.Second, To: 3 * time.Second, Target: 250 * ms, Patience: time.Second}
	row := w.Measure([]load.Result{
		result(Innocent, 999*ms, ms, load.Answered),           // before
		result(Innocent, 3*time.Second, ms, load.Answered),    // after
		result(Slowed, time.Second, ms, load.Answered),        // another path's
		result(Innocent, 1000*ms, 10*ms, load.Answered),       // good
		result(Innocent, 1049*ms, 250*ms, load.Answered),      // just in time
		result(Innocent, 1050*ms, 251*ms, load.Answered),      // too late
		result(Innocent, 1051*ms, 2*ms, load.Refused),         // shed
		result(Innocent, 2999*ms, 3*ms, load.Lost),            // the connection broke
		result(Innocent, 2999*ms, time.Second, load.Lost),     // given up
		result(Innocent, 2999*ms, 20*ms, load.Answered),       // good
		result(Innocent, 2999*ms, 20*ms, load.Answered),       // good
		result("another", 2000*ms, time.Second, load.Refused), // another path's
	}, Innocent)
	if row.Offered != 4 || row.Goodput != 2 || row.Shed != 1 || row.Timeouts != 3 {
		t.Errorf("%+v", row)
	}
	// 10, 20, 20, 250, 251, 1000, 1000: what was shed has no latency, what was lost has the client's patience.
	if row.P50 != 250 || row.P99 != 1000 || row.LateMS != 1 {
		t.Errorf("p50 %v, p99 %v, late %v", row.P50, row.P99, row.LateMS)
	}
	if row.Onset[0] != 260 || row.Onset[1] != 1251 || row.Onset[39] != 2040 {
		t.Errorf("onset %v", row.Onset)
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	if p50, p99, all := percentile(hundred, 0.5), percentile(hundred, 0.99), percentile(hundred, 1); p50 != 50 || p99 != 99 || all != 100 {
		t.Errorf("%v, %v, %v", p50, p99, all)
	}
	if one, none := percentile([]float64{7}, 0.99), percentile(nil, 0.5); one != 7 || none != 0 {
		t.Errorf("%v, %v", one, none)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		foreign, late float64
		valid         bool
	}{{0, 0, true}, {0.1, 5, true}, {-0.05, 0, true}, {0.11, 0, false}, {0, 5.1, false}} {
		row := Row{LateMS: c.late}
		row.Judge(c.foreign, 5*time.Millisecond)
		if row.Valid != c.valid || row.Valid != (row.InvalidReason == "") || row.ForeignCPUs != c.foreign {
			t.Errorf("%v foreign CPUs and %v ms late: %+v", c.foreign, c.late, row)
		}
	}
}
