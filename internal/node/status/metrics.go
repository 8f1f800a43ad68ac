package status

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"temper.dev/temper/internal/base/metric"
	"temper.dev/temper/internal/node/enforce"
)

// mostLimits bounds how many cgroups with a limit have series of their own.
const mostLimits = 500

// Metrics lists all, in the order of the documentation.
func Metrics() []*metric.Metric { return metrics }

var metrics []*metric.Metric

func declare(kind, name, help string, labels ...string) *metric.Metric {
	m := metric.New(kind, name, help, labels...)
	metrics = append(metrics, m)
	return m
}

// Counters start anew when the scheduler is loaded anew. Histograms have no sum: the kernel counts values by power-of-two
// buckets, and does not add them up.
var (
	enforced = declare("gauge", "enforced", "1 where the kernel says that Temper's scheduler is attached, else 0.")
	left     = declare("gauge", "off", "1 where the node is left to the kernel's own scheduler on purpose, as by safe mode; the label says why.", "reason")
	rung     = declare("gauge", "rung", "1 for the rung of the fallback ladder that is in force, 0 for the others.", "rung")
	problems = declare("gauge", "problems", "What 'temper status' lists as problems: how many.")
	failures = declare("gauge", "scheduler_failures", "Failures of scx_temper that count at the moment: they put off its next start.")
	loaded   = declare("gauge", "scheduler_info", "1; the label names the scheduler whose counters these are.", "bpf_sha256")
	heard    = declare("gauge", "heartbeat_age_seconds", "Since the scheduler last heard from its loader.")

	tierCgroups    = declare("gauge", "tier_cgroups", "Cgroups that have the tier by an entry of their own.", "tier")
	tierCPU        = declare("counter", "tier_cpu_seconds_total", "CPU time that the tier's tasks used.", "tier")
	tierQueued     = declare("counter", "tier_queued_total", "Times that a task was queued.", "tier")
	tierPlaced     = declare("counter", "tier_placed_idle_total", "Times that a task was put on an idle CPU.", "tier")
	tierPreempt    = declare("counter", "tier_preempted_total", "Times that a CPU was claimed from a task of the tier, for a higher one. Interrupts by threads that serve one CPU, and by boosts, are not among them.", "tier")
	tierStarvation = declare("counter", "tier_starvation_turns_total", "Starvation turns: short ones, out of order, of a tier that higher tiers kept waiting for too long.", "tier")
	tierAged       = declare("counter", "tier_aged_total", "Tasks that were put to the front of their queue after a long wait.", "tier")
	tierBoosted    = declare("counter", "tier_boosted_total", "Times that a task was boosted: it ran out of order, since others waited, or might, for a kernel lock that it held.", "tier")
	tierWait       = declare("histogram", "tier_wait_seconds", "How long tasks that wanted to run waited for a CPU.", "tier")
	tierLongest    = declare("gauge", "tier_longest_wait_seconds", "The longest wait for a CPU since the scheduler was attached.", "tier")

	waitUnderWay = declare("gauge", "wait_under_way_seconds", "The longest wait of a runnable task that has not ended, by what it waits for. At 30 s the kernel throws the scheduler out.", "for")
	waitLongest  = declare("gauge", "wait_longest_seconds", "The longest wait of a runnable task since the scheduler was attached, by what it waited for; 0: none of 10 ms or longer.", "for")

	gapOverrun   = declare("histogram", "gap_overrun_seconds", "For how long background ran on while a higher tier waited for its CPU.")
	loanBack     = declare("histogram", "loan_back_seconds", "For how long background ran on in the fence after a loan had ended.")
	gapRechecks  = declare("counter", "gap_rechecks_total", "Times that a CPU found higher work, or that it may not run what it was about to, and looked again.")
	systemOver   = declare("counter", "system_share_exhausted_total", "Times that the system tier had used up its share.")
	reserved     = declare("gauge", "reservation_cpus", "CPUs up to which critical comes before standard; no series where it does however much it uses.")
	criticalOver = declare("counter", "reservation_exhausted_total", "Times that the critical tier had used up its reservation.")

	taken       = declare("gauge", "real_time_cpus", "CPUs that a real-time task has had for 0.3 s or longer; starving: others wait there.", "starving")
	rtThrottles = declare("counter", "real_time_throttles_total", "Turns of 50 ms that were taken from real-time tasks for those that waited.")

	crowded          = declare("gauge", "cgroups_crowded", "Cgroups beyond the 16,383, or the 256 levels, that can be told apart: their tasks run as background, and limits of their own are not kept.")
	limitCPUs        = declare("gauge", "limit_cpus", "Quota over period of a cgroup with a limit; the label mode says how it is kept.", "cgroup", "mode")
	limitUsed        = declare("counter", "limit_used_seconds_total", "CPU time that a cgroup used while it had a limit.", "cgroup")
	limitBeyond      = declare("counter", "limit_beyond_seconds_total", "CPU time that it used beyond its limit, in gaps.", "cgroup")
	limitOverrun     = declare("counter", "limit_overrun_seconds_total", "CPU time that it used before it was paid: by late timers, and tasks that are never throttled.", "cgroup")
	limitPeriods     = declare("counter", "limit_periods_total", "Periods of the limit, of 10 ms or longer, in which it used something or waited.", "cgroup")
	limitThrottledIn = declare("counter", "limit_throttled_periods_total", "Periods in which a task had to wait for the limit.", "cgroup")
	limitThrottles   = declare("counter", "limit_throttles_total", "Times that a task had to wait for its limit.", "cgroup")
	limitThrottled   = declare("counter", "limit_throttled_seconds_total", "Time in which some task waited for its limit.", "cgroup")
	limitLongest     = declare("gauge", "limit_longest_throttle_seconds", "The longest wait of one task for its limit, until it could be chosen again.", "cgroup")
	limitWaiting     = declare("gauge", "limit_waiting", "Tasks that wait for their limit now.", "cgroup")
	limitOmitted     = declare("gauge", "limits_omitted", "Cgroups with a limit beyond the 500th by path, which have no series.")
)

// Collector gives Prometheus a new look at each scrape.
type Collector struct{ Look func() (*Status, error) }

// Describe implements prometheus.Collector.
func (Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics {
		out <- m.Desc
	}
}

// Collect implements prometheus.Collector. Counters that cannot be read have no series, and a problem that says why.
func (c Collector) Collect(out chan<- prometheus.Metric) {
	s, err := c.Look()
	if err != nil {
		out <- prometheus.NewInvalidMetric(enforced.Desc, err)
		return
	}
	e := emitter{out}
	e.value(enforced, bit(s.Enforced))
	if s.off != nil {
		e.value(left, 1, s.off.Reason)
	}
	for _, r := range enforce.Rungs {
		e.value(rung, bit(s.Rung == r), string(r))
	}
	e.value(problems, float64(len(s.Problems)))
	e.value(failures, float64(s.Agent.Failures))
	if s.maps == nil {
		return
	}
	e.value(loaded, 1, s.Loader.BPFSHA256)
	e.value(heard, s.Loader.HeartbeatAgeS)
	for i, t := range s.maps.Stats.Tier {
		e.tier(s.Tiers[i], t)
	}
	for _, w := range s.Waits {
		e.value(waitUnderWay, w.UnderWaySeconds, w.For)
		e.value(waitLongest, w.LongestSeconds, w.For)
	}
	e.histogram(gapOverrun, s.maps.Stats.Gap)
	e.histogram(loanBack, s.maps.Stats.LoanBack)
	e.value(gapRechecks, float64(s.Gap.Rechecks))
	e.value(systemOver, float64(s.Gap.SystemOver))
	if s.Loader.Reserves {
		e.value(reserved, s.Loader.ReservationCPUs)
	}
	e.value(criticalOver, float64(s.Gap.CriticalOver))
	var starving int
	for _, r := range s.RealTime {
		starving += int(bit(r.Starves))
	}
	e.value(taken, float64(starving), "true")
	e.value(taken, float64(len(s.RealTime)-starving), "false")
	e.value(rtThrottles, float64(s.RTThrottles))
	e.value(crowded, float64(s.Crowded))
	shown := s.Limits[:min(len(s.Limits), mostLimits)]
	for _, l := range shown {
		e.limit(l)
	}
	e.value(limitOmitted, float64(len(s.Limits)-len(shown)))
}

type emitter struct{ out chan<- prometheus.Metric }

func (e emitter) value(m *metric.Metric, v float64, labels ...string) {
	e.out <- m.Value(v, labels...)
}

func (e emitter) tier(t Tier, raw enforce.TierStats) {
	name := t.Tier.String()
	e.value(tierCgroups, float64(t.Cgroups), name)
	e.value(tierCPU, seconds(raw.RunNs), name)
	e.value(tierQueued, float64(t.Queued), name)
	e.value(tierPlaced, float64(t.PlacedIdle), name)
	e.value(tierPreempt, float64(t.Preempted), name)
	e.value(tierStarvation, float64(t.StarvationTurns), name)
	e.value(tierAged, float64(t.Aged), name)
	e.value(tierBoosted, float64(t.Boosted), name)
	e.histogram(tierWait, raw.Wait, name)
	e.value(tierLongest, seconds(raw.MaxWaitNs), name)
}

func (e emitter) limit(l Limit) {
	cg := l.Cgroup
	e.value(limitCPUs, l.CPUs, cg, l.Mode)
	e.value(limitUsed, l.UsedSeconds, cg)
	e.value(limitBeyond, l.BeyondSeconds, cg)
	e.value(limitOverrun, inSeconds(l.OverrunMs), cg)
	e.value(limitPeriods, float64(l.Periods), cg)
	e.value(limitThrottledIn, float64(l.ThrottledPeriods), cg)
	e.value(limitThrottles, float64(l.Throttles), cg)
	e.value(limitThrottled, l.ThrottledSeconds, cg)
	e.value(limitLongest, inSeconds(l.LongestThrottleMs), cg)
	e.value(limitWaiting, float64(l.Waiting), cg)
}

func (e emitter) histogram(m *metric.Metric, h enforce.Hist, labels ...string) {
	buckets := map[float64]uint64{}
	var below uint64
	for i, n := range h.Bucket[:enforce.HistBuckets-1] {
		below += n
		buckets[math.Ldexp(1e-6, i)] = below
	}
	e.out <- prometheus.MustNewConstHistogram(m.Desc, h.Count(), math.NaN(), buckets, labels...)
}

// inSeconds is exact to the microsecond, as the figure is.
func inSeconds(ms float64) float64 { return math.Round(ms*1e3) / 1e6 }

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
