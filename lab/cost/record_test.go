package cost

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

func record() Record {
	r := Record{Kernel: "6.18.15", CPUs: 2, Rounds: 100, Machine: bench.Machine{MIPSPerCPU: 500}}
	for i, arm := range []string{"eevdf", "temper"} {
		nanos := map[string]float64{}
		for j, operation := range plan.Operations {
			nanos[operation.Name] = float64((i + 1) * (j + 1) * 1000)
		}
		r.Add(plan.Cost{Arm: arm, Preempt: "lazy", Scheduler: arm, Nanos: nanos})
	}
	return r
}

func TestInstructionsFollowFromTime(t *testing.T) {
	if got := record().Arms[1].Instructions["pipe"]; got != 2000 {
		t.Errorf("4000 ns at 500 million instructions a second are %v", got)
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := Write(&out, record()); err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "table.txt", out.String())
}
