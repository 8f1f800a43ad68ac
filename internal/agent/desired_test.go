package agent

import (
	"reflect"
	"testing"

	"temper.dev/temper/internal/config"
	"temper.dev/temper/internal/enforce"
	"temper.dev/temper/internal/tier"
)

func TestAssignments(t *testing.T) {
	got := assignments([]Member{
		{ID: 1, Tier: tier.Critical, Present: true},
		{ID: 2, Tier: tier.Standard, Limits: config.LimitsGap, Present: true},
		{Tier: tier.Background, Limits: config.LimitsFreeze}, // has no cgroup
	})
	want := map[uint64]enforce.Assignment{1: {Tier: uint16(tier.Critical)}, 2: {Tier: uint16(tier.Standard), Limits: enforce.LimitsGap + 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
