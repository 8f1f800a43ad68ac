package nodepods

import (
	"math"
	"testing"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/config"
)

func TestReservationFollowsCriticalPods(t *testing.T) {
	pods := map[string]Pod{"a": {Tier: tier.Critical, CPU: 500}, "b": {Tier: tier.Critical, CPU: 1250}, "c": {Tier: tier.Standard, CPU: 4000},
		"none": {Tier: tier.Critical}}
	own := &config.Config{Reservation: new(int64(7000))}
	for _, c := range []struct {
		pods          map[string]Pod
		percent, want int64
	}{
		{pods, 100, 1750}, {pods, 50, 875}, {pods, 1000, 17500}, {map[string]Pod{"none": pods["none"]}, 100, 0}, {nil, 100, 0},
		{map[string]Pod{"a": {Tier: tier.Critical, CPU: math.MaxInt64}, "b": {Tier: tier.Critical, CPU: math.MaxInt64}}, 1000, config.MostCPUs * 1000}, // scx_temper refuses more
	} {
		k := &Known{Policy: "default", Percent: c.percent, Pods: c.pods}
		k.sum()
		if got := k.over(own).Reservation; got == nil || *got != c.want {
			t.Errorf("%d %% of what %v request: %v, not %d", c.percent, c.pods, got, c.want)
		}
	}
	if got := (&Known{Pods: pods}).over(own); *got.Reservation != 7000 || *own.Reservation != 7000 {
		t.Errorf("without a policy: %+v", got)
	}
}

// What an earlier agent knew is enough, be it of a version that did not follow the policy's per cent.
func TestReservationIsRecalled(t *testing.T) {
	root := fixture.Tree(t)
	known := &Known{Policy: "default", Percent: 50, Pods: map[string]Pod{"a": {Tier: tier.Critical, CPU: 500}}}
	for _, c := range []struct{ percent, want int64 }{{50, 250}, {0, 500}} {
		known.Percent = c.percent
		if err := host.WriteJSON(root.Run(knownFile), known); err != nil {
			t.Fatal(err)
		}
		k, err := recall(root)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.reservation(); got != c.want || k.critical != 500 {
			t.Errorf("of %d %%: %d, not %d; %+v", c.percent, got, c.want, k)
		}
	}
	other := *known
	other.Percent++
	if known.sameNode(&other) {
		t.Error("another per cent is not kept at once")
	}
}
