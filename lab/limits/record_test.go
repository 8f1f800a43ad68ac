package limits

import (
	"strings"
	"testing"

	"temper.dev/temper/lab/plan"
)

func record() Record {
	r := Record{Service: "go", Kernel: "6.18.15", Seed: 1, CPUs: 4, Limit: 1.5, Clients: 8, Load: 0.8, RateRPS: 80, Seconds: 6}
	for _, arm := range []struct {
		name string
		slow float64
	}{{"stock", 4}, {"temper", 1}} {
		for _, background := range []int{0, 4} {
			worse := float64(1 + background)
			r.Add(plan.LimitWindow{Arm: arm.name, Background: background, RPS: 100 / worse, P95: 10 * arm.slow, P99: 20, QuotaUseMean: 1 / worse, QuotaUseMax: 1.25, Valid: true})
			r.Add(plan.LimitWindow{Arm: arm.name, Background: background, OfferedRPS: 80, QuotaUseMean: 0.5, QuotaUseMax: 0.5 * worse,
				P50: worse, P95: arm.slow * worse, P99: 2 * arm.slow * worse, Valid: background == 0, InvalidReason: "no reason"})
		}
	}
	return r
}

func TestAnArmsFiguresAreTheWorstOfItsSteps(t *testing.T) {
	arm := record().Arms[1]
	want := Figures{QuotaUseMean: 0.2, QuotaUseMax: 2.5, TPS: 20, P50: 5, P95: 5, P99: 10, Valid: false}
	if arm.Arm != "temper" || arm.Figures != want || len(arm.Steps) != 2 {
		t.Errorf("got %+v, want %+v", arm, want)
	}
	want = Figures{QuotaUseMean: 1, QuotaUseMax: 1.25, TPS: 100, P50: 1, P95: 1, P99: 2, Valid: true}
	if got := arm.Steps[0].Figures; got != want {
		t.Errorf("alone: got %+v, want %+v", got, want)
	}
}

func TestTableComparesWithStockAtTheSameStep(t *testing.T) {
	var out strings.Builder
	if err := Write(&out, record()); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	for i, want := range map[int]string{
		1: "full load steady load",
		2: "arm bg use most tps over stock p95 over stock p99 over stock p50 p95 over stock p99 over stock",
		3: "stock 0 1.000 1.250 100 1.00 40 1.00 20 1.00 1 4 1.00 8 1.00",
		6: "temper 4 0.200 2.500 20 1.00 10 0.25 20 1.00 5 5 0.25 10 0.25",
		7: "does not count: stock, 4 spinners: no reason",
	} {
		if rows[i] != want {
			t.Errorf("row %d: got %q, want %q", i, rows[i], want)
		}
	}
}

func TestBarsOfPacing(t *testing.T) {
	window := func(arm string, tps, p95 float64) (closed, open plan.LimitWindow) {
		return plan.LimitWindow{Arm: arm, RPS: tps, QuotaUseMean: 0.985, QuotaUseMax: 1.009, Valid: true},
			plan.LimitWindow{Arm: arm, OfferedRPS: 80, P95: p95, P99: 2 * p95, Valid: true}
	}
	var r Record
	for _, arm := range []struct {
		name     string
		tps, p95 float64
	}{{"none", 300, 2}, {"temper", 99, 4}, {"stock", 100, 10}} {
		closed, open := window(arm.name, arm.tps, arm.p95)
		r.Add(closed)
		r.Add(open)
	}
	bars := func() string {
		var out strings.Builder
		if err := writeBars(&out, r); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	for _, want := range []string{
		"in quotas ≥ 0.98 0.985 most", "in quotas ≤ 1.01 1.009 requests", "requests at full load over stock ≥ 1.00 0.990 * p95",
		"p95 at steady load over stock ≤ 0.35 0.400 * p99", "3 of 5 missed",
	} {
		if got := bars(); !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	r.Arms[0].Steps[0].P95 = 9 // alone, and without a limit, hardly better than stock
	if got := bars(); !strings.Contains(got, "0.400 ** p99") {
		t.Error(got)
	}
	r.Arms[0].Steps[0].Valid = false // so that nobody knows
	if got := bars(); !strings.Contains(got, "0.400 * p99") {
		t.Error(got)
	}
	r.Arms[2].Steps[0].Valid = false
	if got := bars(); got != "" {
		t.Error("beside a window that does not count: ", got)
	}
}
