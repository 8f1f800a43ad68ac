package bench_test

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
)

// invalidate marks a window of the second arm.
func invalidate(r bench.Record) bench.Record {
	r.Arms[1].Steps[2].Valid, r.Arms[1].Steps[2].InvalidReason = false, "client was throttled"
	return r
}

func TestWriteTable(t *testing.T) {
	var b strings.Builder
	if err := bench.WriteTable(&b, invalidate(benchtest.Record(t, "chain", 1, "eevdf", "cpuidle", "temper"))); err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "table.txt", b.String())
	if strings.Contains(b.String(), "\x1b") {
		t.Error("colours without being asked for")
	}
}

func TestWriteTableInColour(t *testing.T) {
	r := invalidate(benchtest.Record(t, "chain", 1, "eevdf", "cpuidle", "temper"))
	var plain, coloured strings.Builder
	if err := bench.WriteTable(&plain, r); err != nil {
		t.Fatal(err)
	}
	if err := bench.WriteTable(&coloured, r, bench.Colour()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(coloured.String(), "\x1b[31minvalid window: client was throttled\x1b[0m") {
		t.Error("the invalid window is not red")
	}
	if got := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[0m", "").Replace(coloured.String()); got != plain.String() {
		t.Error("colours change the text")
	}
}

func TestSummaryText(t *testing.T) {
	records := append(seeds(t, 3, "chain", "eevdf", "cpuidle", "temper"), seeds(t, 3, "memcached", "eevdf", "cpuidle", "temper")...)
	records[1] = invalidate(records[1])
	s, err := bench.NewSummary(records, seeds(t, 10, "chain", "cpuidle", "cpuidle"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range s.Pools {
		if err := p.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := bench.WriteBars(&b, s.Bars); err != nil {
		t.Fatal(err)
	}
	if err := s.AA.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "summary.txt", b.String()+s.Verdict+"\n")
}
