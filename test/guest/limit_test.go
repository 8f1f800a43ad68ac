//go:build guest

package guest

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"temper.dev/temper/internal/node/status"
)

// What a period may take beyond its quota, a CPU of the node: AHEAD of sched/limit.bpf.h.
const ahead = 25 * time.Millisecond

// limit sets cpu.max of a cgroup that it makes.
func limit(t *testing.T, cg string, quota, period time.Duration) {
	t.Helper()
	controlledCgroup(t, cg)
	write(t, root.Cgroup(cg+"/cpu.max"), fmt.Sprintf("%d %d", quota.Microseconds(), period.Microseconds()))
}

type useAt struct{ cpu, clock time.Duration }

// watchUse notes what the spinners have used, each period, n times and once before.
func watchUse(t *testing.T, group []*spinner, period time.Duration, n int) (list []useAt) {
	t.Helper()
	began := time.Now()
	for i := range n + 1 {
		time.Sleep(time.Until(began.Add(time.Duration(i) * period)))
		u := useAt{clock: time.Since(began)}
		for _, s := range group {
			u.cpu += s.cpuTime(t)
		}
		list = append(list, u)
	}
	return list
}

// cpusUsed is over the whole time.
func cpusUsed(list []useAt) float64 {
	first, end := list[0], list[len(list)-1]
	return float64(end.cpu-first.cpu) / float64(end.clock-first.clock)
}

// checkUse checks the windows of so many periods: no more than flows in, and `most` beyond.
func checkUse(t *testing.T, list []useAt, quota, period time.Duration, periods int, most time.Duration) {
	t.Helper()
	for i := range len(list) - periods {
		from, to := list[i], list[i+periods]
		due := time.Duration(float64(to.clock-from.clock) * float64(quota) / float64(period))
		if used := to.cpu - from.cpu; used > due+most {
			t.Errorf("%d periods from %v on: used %v, due %v", periods, from.clock, used, due)
		}
	}
}

// limitOf is what status says of a cgroup's limit.
func limitOf(t *testing.T, cg string) status.Limit {
	t.Helper()
	for _, l := range look(t).Limits {
		if l.Cgroup == cg {
			return l
		}
	}
	t.Fatalf("status knows no limit of %s", cg)
	return status.Limit{}
}

// Eight threads that compute without an end get what the limit says: over ten periods to the percent, and none of them
// waits for long.
func limitIsKept(t *testing.T) {
	for _, c := range []struct {
		quota, period time.Duration
		// In ms, a third more than was measured: another build runs in another order. With a slow quota a turn takes long to come, and what
		// eight programs owe from their start, where they often may not be throttled (up to 15 ms), is paid first.
		longest float64
	}{
		{150 * time.Millisecond, 100 * time.Millisecond, 16},
		{50 * time.Millisecond, 100 * time.Millisecond, 40},
		{5 * time.Millisecond, 100 * time.Millisecond, 350},
		{15 * time.Millisecond, 10 * time.Millisecond, 16},
		{1500 * time.Millisecond, 1000 * time.Millisecond, 20}, // the kernel's longest period
		{3 * time.Millisecond / 2, time.Millisecond, 16},       // and its shortest
	} {
		t.Run(fmt.Sprint(c.quota, " of ", c.period), func(t *testing.T) {
			const cg = "/limited"
			limit(t, cg, c.quota, c.period)
			if l := limitOf(t, cg); l.Throttles == 0 && l.ThrottledSeconds > 0 {
				t.Errorf("nobody was throttled, for %v s", l.ThrottledSeconds)
			}
			group := spin(t, cg, 8)
			watchUse(t, group, 1200*time.Millisecond, 1) // what an idle one may use at once, and repays in ten periods
			period := max(c.period, 20*time.Millisecond)
			quota := time.Duration(float64(c.quota) * float64(period) / float64(c.period))
			list := watchUse(t, group, period, max(12, int(time.Second/period)))
			inQuotas := cpusUsed(list) * float64(c.period) / float64(c.quota)
			l := limitOf(t, cg)
			t.Logf("%.4f quotas; %+v", inQuotas, l)
			if inQuotas < 0.98 || inQuotas > 1.01 {
				t.Errorf("used %.4f quotas", inQuotas)
			}
			bucket := min(time.Duration(runtime.NumCPU())*ahead, quota)
			most := quota / 10
			if c.period < 100*time.Millisecond {
				most = bucket // of so short a time turns are a great part
			}
			checkUse(t, list, quota, period, 10, most)
			checkUse(t, list, quota, period, 1, bucket)
			if l.LongestThrottleMs > c.longest || l.Throttles == 0 || l.ThrottledSeconds == 0 {
				t.Errorf("%+v", l)
			}
			// Of more than a CPU they save up while this test looks, and all have been unthrottled: up to two minutes passed before.
			if c.quota < c.period {
				eventually(t, "somebody waits", func() bool { return limitOf(t, cg).Waiting > 0 })
			}
			for _, s := range group {
				s.end()
			}
		})
	}
}

// Threads that wake each other all the time have turns of microseconds, and pay for them as exactly.
func limitOfShortTurns(t *testing.T) {
	const cg, quota, period = "/paced/critical", 100 * time.Millisecond, 100 * time.Millisecond
	controlledCgroup(t, "/paced")
	limit(t, cg, quota, period)
	s := &spinner{cmd: exec.Command("cost", "messages", "1000000", strconv.Itoa(runtime.NumCPU()))}
	s.cmd.Env = []string{"LADDER_CGROUPS=" + root.Cgroup("/paced")}
	s.start(t)
	eventually(t, "it has used what an idle cgroup may use at once, and repaid it", func() bool { return usage(t, cg) > 13*quota })
	before, began := usage(t, cg), time.Now()
	time.Sleep(2 * time.Second) // what is measured
	inQuotas := float64(usage(t, cg)-before) / float64(time.Since(began)) * float64(period) / float64(quota)
	t.Logf("%.4f quotas; %+v", inQuotas, limitOf(t, cg))
	if inQuotas < 0.98 || inQuotas > 1.01 {
		t.Errorf("used %.4f quotas", inQuotas)
	}
}

// A cgroup keeps its own limit and those of all above it, three levels of them; one that has none keeps those above.
func limitsNest(t *testing.T) {
	const period = 100 * time.Millisecond
	limit(t, "/node", 100*time.Millisecond, period)
	limit(t, "/node/a", 50*time.Millisecond, period)
	limit(t, "/node/b", 60*time.Millisecond, period)
	limit(t, "/node/b/c", 20*time.Millisecond, period)
	controlledCgroup(t, "/node/b/d")
	controlledCgroup(t, "/free")
	a, c, d, free := spin(t, "/node/a", 3), spin(t, "/node/b/c", 3), spin(t, "/node/b/d", 3), spin(t, "/free", 3)
	watchUse(t, a, 1200*time.Millisecond, 1)
	before, began := watchUse(t, free, time.Millisecond, 0), time.Now()
	for _, level := range []struct {
		name        string
		group       []*spinner
		quota       time.Duration
		least, most float64
	}{
		{"/node", slices.Concat(a, c, d), 100 * time.Millisecond, 0.97, 1.01},
		{"/node/a", a, 50 * time.Millisecond, 0.36, 0.517},
		{"/node/b", slices.Concat(c, d), 60 * time.Millisecond, 0.46, 0.621},
		{"/node/b/c", c, 20 * time.Millisecond, 0.1, 0.207},
	} {
		// What the levels above leave to a cgroup varies, and it makes up for that. Windows that begin within one of
		// its half periods may so have up to half a quota more (sched/quota.bpf.h).
		most := level.quota / 10
		if level.name != "/node" {
			most += level.quota / 2
		}
		list := watchUse(t, level.group, period, 20)
		if got := cpusUsed(list); got < level.least || got > level.most {
			t.Errorf("%s uses %.3f CPUs", level.name, got)
		}
		checkUse(t, list, level.quota, period, 10, most)
	}
	ended := watchUse(t, free, time.Millisecond, 0)
	rest := float64(ended[0].cpu-before[0].cpu) / float64(time.Since(began))
	if rest < float64(runtime.NumCPU())-1.1 {
		t.Errorf("the unlimited ones have %.3f CPUs", rest)
	}
}

// A burst is what was not used before: it may be used at once.
func burst(t *testing.T) {
	const quota, period, burst = 20 * time.Millisecond, 100 * time.Millisecond, 20 * time.Millisecond
	limit(t, "/limited", quota, period)
	write(t, root.Cgroup("/limited/cpu.max.burst"), fmt.Sprint(burst.Microseconds()))
	group := spin(t, "/limited", 1)
	watchUse(t, group, period, 1)
	write(t, root.Cgroup("/limited/cgroup.freeze"), "1")
	watchUse(t, group, 4*period, 1)
	before := group[0].cpuTime(t)
	began := time.Now()
	write(t, root.Cgroup("/limited/cgroup.freeze"), "0")
	used := watchUse(t, group, period, 1)[1].cpu - before
	flowed := time.Duration(float64(time.Since(began)) * float64(quota) / float64(period))
	most := flowed + burst + min(time.Duration(runtime.NumCPU())*ahead, quota)
	t.Logf("used %v; %v at the most", used, most)
	if used < quota+burst || used > most {
		t.Errorf("used %v in the first period, not %v to %v", used, quota+burst, most)
	}
}

// Who was idle may use a quota at once and more comes meanwhile, but ten periods in a row keep to the limit, from whenever one
// counts; and nobody stands still to pay it back.
func aheadIsPaidBack(t *testing.T) {
	const cg, quota, period = "/limited", 100 * time.Millisecond, 100 * time.Millisecond
	limit(t, cg, quota, period)
	group := spin(t, cg, 4)
	watchUse(t, group, period, 1)
	write(t, root.Cgroup(cg+"/cgroup.freeze"), "1")
	watchUse(t, group, 12*period, 1)
	write(t, root.Cgroup(cg+"/cgroup.freeze"), "0")
	list := watchUse(t, group, period, 24)
	for i, to := range list[1:] {
		from := list[i]
		used := float64(to.cpu-from.cpu) / float64(to.clock-from.clock)
		t.Logf("period %d: %.3f quotas", i, used)
		if i == 0 && used < 1.3 {
			t.Errorf("the first brings %.3f quotas", used)
		}
		if used < 0.85 {
			t.Errorf("period %d brings %.3f quotas", i, used)
		}
	}
	checkUse(t, list, quota, period, 10, quota/10)
	// The bucket counts from the first that runs, this test from a little later: its first window reaches into the third half
	// period, where all CPUs may run at once.
	const later = time.Millisecond
	cpus := time.Duration(runtime.NumCPU())
	checkUse(t, list, quota, period, 1, min(cpus*ahead, quota)+cpus*later)
}
