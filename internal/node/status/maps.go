package status

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
)

// fromMaps adds the scheduler's own figures.
func (s *Status) fromMaps(m *enforce.Snapshot, monotonic time.Duration) {
	s.maps = m
	s.LimitsMode = m.Info.LimitsMode()
	age := monotonic - time.Duration(m.Control.HeartbeatNs)
	s.Loader = &Loader{
		PID: int(m.Info.LoaderPID), SystemSharePct: int(m.Info.SystemSharePct), Reserves: m.Info.Reservation != 0,
		ReservationCPUs: float64(m.Control.ReservationMCPU) / 1000,
		Fence:           m.Info.FenceCPUs().String(), Loans: m.Info.Loans(), SMT: m.Info.SMT(), LLCs: int(m.Info.LLCs),
		HeartbeatTimeoutS: float64(m.Info.HeartbeatTimeoutMs) / 1000, HeartbeatAgeS: max(0, age.Round(time.Millisecond).Seconds()),
		BPFSHA256: hex.EncodeToString(m.Info.BPFSHA256[:]),
	}
	if s.Loader.Reserves && s.Loader.ReservationCPUs > float64(m.Info.NrCPUs) {
		s.problem("the reservation is %.1f CPUs, and the node has %d: critical always comes first", s.Loader.ReservationCPUs, m.Info.NrCPUs)
	}
	if m.Exit.Kind != 0 && !s.Enforced {
		s.problem("the kernel has thrown the scheduler out: %s (%s)", enforce.Text(m.Exit.Reason[:]), enforce.Text(m.Exit.Msg[:]))
	}
	timeout := time.Duration(m.Info.HeartbeatTimeoutMs) * time.Millisecond
	if s.Enforced && age > 3*time.Second && timeout > 0 {
		s.problem("the scheduler is an orphan: it leaves %v after its last heartbeat, which was %v ago", timeout, age.Round(time.Second))
	}
	s.Crowded = int(m.Stats.Crowded)
	if s.Crowded > 0 {
		s.problem("%d cgroups are beyond the %d, or the %d levels, that can be told apart: their tasks run as background, within the limit of the cgroup above",
			s.Crowded, enforce.MaxCgroups-1, enforce.MaxLevels)
	}
	var count [tier.Count]int
	for _, a := range m.Tiers {
		count[a.Tier]++
	}
	for i, t := range m.Stats.Tier {
		s.Tiers = append(s.Tiers, Tier{
			Tier: tier.Tier(i), Cgroups: count[i], CPUSeconds: float64(t.RunNs/1e6) / 1e3,
			Queued: t.Enqueued, PlacedIdle: t.PlacedIdle, Preempted: t.Preempted, StarvationTurns: t.StarvationTurns, Aged: t.Aged, Boosted: t.Boosted,
			WaitP50US: t.Wait.Percentile(50), WaitP99US: t.Wait.Percentile(99), WaitMaxUS: t.MaxWaitNs / 1000,
			Waits: t.Wait.Count(), LongWaits: t.Wait.AtLeast(longWait),
		})
	}
	s.Gap = &Gap{
		P50US: m.Stats.Gap.Percentile(50), P99US: m.Stats.Gap.Percentile(99),
		LoanBackP50US: m.Stats.LoanBack.Percentile(50), LoanBackP99US: m.Stats.LoanBack.Percentile(99),
		Rechecks: m.Stats.Rechecks, SystemOver: m.Stats.SystemOver, CriticalOver: m.Stats.CriticalOver,
	}
}

// longWait is the power of two, in microseconds, from which on a wait is long.
const longWait = 14

// addFence tells of what a fence has and the node has not.
func (s *Status) addFence(root host.Root, m *enforce.Snapshot) {
	for _, cpu := range m.Info.FenceCPUs().List() {
		if root.IsOffline(cpu) {
			s.problem("CPU %d of the fence is offline: nothing is set aside there", cpu)
		}
	}
}

// addLimits lists limits by the cgroups' paths. One that has gone since, or lies deeper than a path can name, has its id.
func (s *Status) addLimits(root host.Root, limits []enforce.Limit) {
	if len(limits) == 0 {
		return
	}
	paths := map[uint64]string{}
	err := cgroup.Walk(root, func(cg string) error {
		if id, err := cgroup.ID(root, cg); err == nil {
			paths[id] = host.Printable(cg)
		}
		return nil
	})
	if err != nil {
		s.problem("cgroups cannot be searched for those with a limit: %v", err)
	}
	for _, l := range limits {
		path, ok := paths[l.Cgroup]
		if !ok {
			path = fmt.Sprintf("(no path: %d)", l.Cgroup)
		}
		ms := func(ns uint64) float64 { return float64(ns/1000) / 1e3 }
		s.Limits = append(s.Limits, Limit{
			Cgroup: path, Mode: l.LimitsMode(), CPUs: float64(l.QuotaNs) / float64(l.PeriodNs), PeriodMs: ms(l.PeriodNs), BurstMs: ms(l.BurstNs),
			UsedSeconds: float64(l.UsedNs/1e6) / 1e3, BeyondSeconds: float64(l.BeyondNs/1e6) / 1e3, OverrunMs: ms(l.OverrunNs),
			Periods: l.Periods, ThrottledPeriods: l.ThrottledPeriods, Throttles: l.Throttles, ThrottledSeconds: float64(l.ThrottledNs/1e6) / 1e3, LongestThrottleMs: ms(l.LongestThrottleNs), Waiting: l.Throttled,
		})
	}
	slices.SortFunc(s.Limits, func(a, b Limit) int { return cmp.Compare(a.Cgroup, b.Cgroup) })
}
