package run

import (
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

func TestCheckCosts(t *testing.T) {
	good := plan.Costs{Arms: []string{"eevdf", "temper"}, CPUs: 2, Rounds: 1}
	if err := CheckCosts(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []plan.Costs{
		{Arms: []string{"cfs"}, CPUs: 2, Rounds: 1}, {Arms: []string{"fifo"}, CPUs: 2, Rounds: 1}, {Arms: []string{"sched-idle"}, CPUs: 2, Rounds: 1}, {CPUs: 2, Rounds: 1},
		{Arms: good.Arms, CPUs: 1, Rounds: 1}, {Arms: good.Arms, CPUs: 99, Rounds: 1}, {Arms: good.Arms, CPUs: 2},
	} {
		if err := CheckCosts(bad); exit.StatusOf(err) != exit.Usage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
