package nodepods

import (
	"reflect"
	"testing"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/enforce"
	"temper.dev/temper/internal/node/status"
)

// A report has the scheduler's figures, and none where there is none.
func TestFigures(t *testing.T) {
	seen := &status.Status{
		Tiers: []status.Tier{{}, {CPUSeconds: 2.5, WaitP50US: 4, WaitP99US: 8, WaitMaxUS: 9, Waits: 100, LongWaits: 3}},
		Gap:   &status.Gap{P50US: 16, P99US: 32, LoanBackP50US: 64, LoanBackP99US: 128},
	}
	s := statusOf(host.Root(t.TempDir()), agent.State{}, seen, "", v1alpha1.TemperNodeStatus{})
	want := v1alpha1.TierStatus{Tier: "critical", CPUSeconds: "2.500", WaitP50Microseconds: 4, WaitP99Microseconds: 8, WaitMaxMicroseconds: 9, Waits: 100, LongWaits: 3}
	if got := s.Tiers[tier.Critical]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if want := (v1alpha1.GapStatus{OverrunP50Microseconds: 16, OverrunP99Microseconds: 32, LoanBackP50Microseconds: 64, LoanBackP99Microseconds: 128}); s.Gap == nil || *s.Gap != want {
		t.Errorf("%+v, want %+v", s.Gap, want)
	}
	if s := statusOf(host.Root(t.TempDir()), agent.State{}, &status.Status{}, "", v1alpha1.TemperNodeStatus{}); s.Gap != nil || len(s.Tiers) != tier.Count || s.Tiers[tier.Critical].CPUSeconds != "" {
		t.Errorf("without a scheduler: %+v", s)
	}
}

// What is reserved is told while it is in force: where the scheduler has left, its maps may still be there.
func TestReservationIsReported(t *testing.T) {
	for _, c := range []struct {
		enforced bool
		loader   status.Loader
		want     string
	}{
		{true, status.Loader{Reserves: true, ReservationCPUs: 2.5}, "2500m"}, {true, status.Loader{Reserves: true}, "0"},
		{true, status.Loader{}, "<nil>"}, {false, status.Loader{Reserves: true, ReservationCPUs: 2.5}, "<nil>"},
	} {
		s := statusOf(host.Root(t.TempDir()), agent.State{}, &status.Status{Enforced: c.enforced, Loader: &c.loader}, "", v1alpha1.TemperNodeStatus{})
		if got := s.Reservation.String(); got != c.want {
			t.Errorf("enforced %v, %+v: %s, not %s", c.enforced, c.loader, got, c.want)
		}
	}
}

// What a node could is kept until it could it with another kernel.
func TestTheKernelThatCould(t *testing.T) {
	attached, fallen := &status.Status{Rung: enforce.SCX, Enforced: true}, &status.Status{Rung: enforce.CPUIdle}
	for _, c := range []struct {
		what   string
		seen   *status.Status
		before string
		want   string
	}{
		{"never", fallen, "", ""}, {"now", attached, "", "new"}, {"before", fallen, "old", "old"}, {"before and now", attached, "old", "new"},
	} {
		got := statusOf(host.Root(t.TempDir()), agent.State{PID: 1}, c.seen, "new", v1alpha1.TemperNodeStatus{EnforcedKernelVersion: c.before})
		if got.EnforcedKernelVersion != c.want || got.KernelVersion != "new" {
			t.Errorf("%s: %q of %q, want %q of new", c.what, got.EnforcedKernelVersion, got.KernelVersion, c.want)
		}
	}
}
