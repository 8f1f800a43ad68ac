package agent

import (
	"reflect"
	"slices"
	"testing"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/enforce"
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

// A kubelet's own cgroups are left to it: the pods in them stand for them, unless they have a tier of their own.
func TestWhatIsMadeIdle(t *testing.T) {
	const best, unit = "/kubepods/besteffort", "/kubepods.slice/kubepods-besteffort.slice"
	cgs := []string{"/batch", "/batch/job", best, best + "/podA", best + "/podA/container", best + "/podB", "/kubepods/podC", unit, unit + "/podD.slice", "/besteffort", "/gone"}
	root := fixture.Tree(t, append([]string{"/kubepods", "/kubepods.slice"}, cgs...)...)
	members := []Member{{Cgroup: best + "/podB", Tier: tier.Critical, Present: true}}
	for _, cg := range []string{"/batch", "/kubepods", "/kubepods.slice", "/besteffort", "/gone"} {
		members = append(members, Member{Cgroup: cg, Tier: tier.Background, Present: cg != "/gone"})
	}
	var got []string
	for _, cg := range backgroundCgroups(root, members) {
		got = append(got, cg.Path)
	}
	slices.Sort(got)
	if want := []string{"/batch", "/besteffort", unit + "/podD.slice", best + "/podA", "/kubepods/podC"}; !slices.Equal(got, want) {
		t.Errorf("idle: %q, want %q", got, want)
	}
}
