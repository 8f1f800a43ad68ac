//go:build guest

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"temper.dev/temper/internal/config"
	"temper.dev/temper/internal/enforce"
	"temper.dev/temper/internal/exit"
	"temper.dev/temper/internal/status"
	"temper.dev/temper/internal/tier"
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
func TestTimedLimitIsKept(t *testing.T) {
	joinSystem(t)
	attach(t)
	for _, c := range []struct {
		quota, period time.Duration
		// In ms, with some room for what a compiler changes. With a slow quota a turn takes long to come, and what
		// eight programs owe from their start, where they often may not be held (up to 15 ms), is paid first.
		longest float64
	}{
		{150 * time.Millisecond, 100 * time.Millisecond, 12},
		{50 * time.Millisecond, 100 * time.Millisecond, 40},
		{5 * time.Millisecond, 100 * time.Millisecond, 350},
		{15 * time.Millisecond, 10 * time.Millisecond, 12},
		{1500 * time.Millisecond, 1000 * time.Millisecond, 20}, // the kernel's longest period
		{3 * time.Millisecond / 2, time.Millisecond, 12},       // and its shortest
	} {
		t.Run(fmt.Sprint(c.quota, " of ", c.period), func(t *testing.T) {
			const cg = "/limited"
			limit(t, cg, c.quota, c.period)
			if l := limitOf(t, cg); l.Holds == 0 && l.HeldSeconds > 0 {
				t.Errorf("nobody was held, for %v s", l.HeldSeconds)
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
			if l.LongestHoldMs > c.longest || l.Holds == 0 || l.HeldSeconds == 0 {
				t.Errorf("%+v", l)
			}
			// At one moment's look all may have been let go of: while this test runs they save up.
			eventually(t, "somebody waits", func() bool { return limitOf(t, cg).Waiting > 0 })
			for _, s := range group {
				s.end()
			}
		})
	}
}

// Threads that wake each other all the time have turns of microseconds, and pay for them as exactly.
func TestTimedLimitOfShortTurns(t *testing.T) {
	joinSystem(t)
	attach(t)
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
func TestTimedLimitsNest(t *testing.T) {
	joinSystem(t)
	attach(t)
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
		// its half periods may so have up to half a quota more (sched/bucket.bpf.h).
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

// Beyond its limit a cgroup may use what nobody wants, and no more.
func TestTimedGapsBeyondALimit(t *testing.T) {
	joinSystem(t)
	attach(t, "--limits", "gap")
	const quota, period = 50 * time.Millisecond, 100 * time.Millisecond
	limit(t, "/limited", quota, period)
	controlledCgroup(t, "/others")
	n := runtime.NumCPU()
	group := spin(t, "/limited", 2*n)
	watchUse(t, group, 300*time.Millisecond, 1)
	if got := cpusUsed(watchUse(t, group, period, 10)); got < 0.97*float64(n) {
		t.Errorf("alone on %d CPUs it uses %.3f", n, got)
	}
	spin(t, "/others", 2*n)
	watchUse(t, group, 300*time.Millisecond, 1)
	if got := cpusUsed(watchUse(t, group, period, 20)); got < 0.49 || got > 0.53 {
		t.Errorf("beside others it uses %.3f CPUs, not 0.5", got)
	}
	if l := limitOf(t, "/limited"); l.BeyondSeconds < 0.5 {
		t.Errorf("%+v", l)
	}
}

// As under the stock kernel: all of a quota at once, then nothing until the next period.
func TestTimedFreeze(t *testing.T) {
	joinSystem(t)
	attach(t, "--limits", "freeze")
	limit(t, "/limited", 150*time.Millisecond, 100*time.Millisecond)
	group := spin(t, "/limited", 8)
	watchUse(t, group, 300*time.Millisecond, 1)
	if got := cpusUsed(watchUse(t, group, 100*time.Millisecond, 20)); got < 1.45 || got > 1.52 {
		t.Errorf("%.3f CPUs, not 1.5", got)
	}
	if l := limitOf(t, "/limited"); l.LongestHoldMs < 20 {
		t.Errorf("nobody was frozen: %+v", l)
	}
}

// A burst is what was not used before: it may be used at once.
func TestTimedBurst(t *testing.T) {
	joinSystem(t)
	attach(t)
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
func TestTimedAheadIsPaidBack(t *testing.T) {
	joinSystem(t)
	attach(t)
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
	checkUse(t, list, quota, period, 1, min(time.Duration(runtime.NumCPU())*ahead, quota))
}

// What a tiny limit holds dies, stops, freezes, moves and changes its CPUs as anybody else does, though its turn is a
// long way off: forty others are before it, with four turns a second.
func TestTimedHeldTasksObey(t *testing.T) {
	joinSystem(t)
	attach(t)
	const cg = "/limited"
	limit(t, cg, time.Millisecond, time.Second)
	controlledCgroup(t, "/elsewhere")
	spin(t, cg, 40)
	held := func() *spinner {
		s := spin(t, cg, 1)[0]
		eventually(t, "it is held", func() bool { return limitOf(t, cg).Waiting == 41 })
		return s
	}
	stopped := held()
	promptly(t, "it stops", func() {
		stopped.cmd.Process.Signal(syscall.SIGSTOP)
		eventually(t, "it stops", func() bool { return stopped.state(t) == "T" })
	})
	stopped.cmd.Process.Kill()
	stopped.cmd.Wait()

	killed := held()
	promptly(t, "it dies", func() {
		killed.cmd.Process.Kill()
		killed.cmd.Wait()
	})

	frozen := held()
	promptly(t, "all freeze", func() {
		write(t, root.Cgroup(cg+"/cgroup.freeze"), "1")
		eventually(t, "all freeze", func() bool { return strings.Contains(read(t, root.Cgroup(cg+"/cgroup.events")), "frozen 1") })
	})
	write(t, root.Cgroup(cg+"/cgroup.freeze"), "0")
	frozen.cmd.Process.Kill()
	frozen.cmd.Wait()

	moved := held()
	promptly(t, "it changes its CPUs, moves and runs", func() {
		moved.pin(t, runtime.NumCPU()-1)
		moved.nice(t, 5)
		moved.moveTo(t, "/elsewhere")
		used(t, 100*time.Millisecond, []*spinner{moved})
	})
	moved.moveTo(t, cg)
	eventually(t, "it is held again", func() bool { return limitOf(t, cg).Waiting == 41 })
	promptly(t, "without the limit it runs", func() {
		write(t, root.Cgroup(cg+"/cpu.max"), "max")
		used(t, time.Millisecond, []*spinner{moved})
	})
	write(t, root.Cgroup(cg+"/cpu.max"), "1000 1000000")
	eventually(t, "all are held once more", func() bool { return limitOf(t, cg).Waiting == 41 })
	write(t, root.Cgroup(cg+"/cgroup.kill"), "1")
	eventually(t, "all are dead", func() bool { return strings.Contains(read(t, root.Cgroup(cg+"/cgroup.events")), "populated 0") })
	if l := limitOf(t, cg); l.Waiting != 0 {
		t.Errorf("somebody still waits: %+v", l)
	}
}

// Limits change a thousand times while tasks wait for them; five hundred limited cgroups come and go.
func TestLimitsComeAndGo(t *testing.T) {
	joinSystem(t)
	attach(t)
	seq := kernel(t).EnableSeq
	limit(t, "/limited", 10*time.Millisecond, 100*time.Millisecond)
	controlledCgroup(t, "/limited/some")
	write(t, root.Cgroup("/limited/cgroup.subtree_control"), "+cpu")
	group := spin(t, "/limited/some", 8)
	for i := range 1000 {
		write(t, root.Cgroup("/limited/cpu.max"), []string{"1000 1000000", "max", "150000 100000", "1000 1000", "200000 10000", "50000 100000"}[i%6])
	}
	const script = `cd /sys/fs/cgroup/limited
		for i in $(seq 100); do mkdir c$i && echo 20000 100000 >c$i/cpu.max && sh -c "echo 0 >c$i/cgroup.procs" & done; wait
		for i in $(seq 100); do rmdir c$i; done`
	for round := range 5 {
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("round %d: %v: %s", round, err, out)
		}
	}
	write(t, root.Cgroup("/limited/cpu.max"), "max")
	for _, s := range group {
		used(t, 10*time.Millisecond, []*spinner{s})
	}
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Errorf("%+v, enable_seq was %d", s, seq)
	}
	if list := snapshot(t).Limits; len(list) != 0 {
		t.Errorf("limits that are gone: %+v", list)
	}
}

// Once Temper has left, the kernel keeps the limit again.
func TestKeptLimitsGoBackToTheKernel(t *testing.T) {
	l := attach(t)
	limit(t, "/limited", 10*time.Millisecond, 100*time.Millisecond)
	spin(t, "/limited", 2)
	in := func(stat string) (n int) {
		for line := range strings.Lines(stat) {
			if text, ok := strings.CutPrefix(line, "nr_throttled "); ok {
				n, _ = strconv.Atoi(strings.TrimSpace(text))
			}
		}
		return n
	}
	throttled := func() int { return in(read(t, root.Cgroup("/limited/cpu.stat"))) }
	kernels := throttled()
	eventually(t, "Temper keeps it", func() bool { return limitOf(t, "/limited").Holds > 10 })
	eventually(t, "tools can read it", func() bool {
		code, stat, _ := temperCommand(t, "status", "--cpu-stat", "/limited")
		return code == 0 && in(stat) > kernels+2
	})
	before := throttled()
	if before != kernels {
		t.Errorf("the kernel counts as well: %d, then %d", kernels, before)
	}
	l.leave(t, syscall.SIGTERM)
	eventually(t, "the kernel keeps it", func() bool { return throttled() > before+2 })
}

// What a cgroup uses the kernel counts, whoever schedules; and it keeps memory limits.
func TestKeptLimitsLeaveAccountingToTheKernel(t *testing.T) {
	write(t, root.Cgroup("/cgroup.subtree_control"), "+memory")
	attach(t)
	limit(t, "/limited", 50*time.Millisecond, 100*time.Millisecond)
	group := spin(t, "/limited", 2)
	before, had := usage(t, "/limited"), group[0].cpuTime(t)+group[1].cpuTime(t)
	eventually(t, "they have used half a second", func() bool { return usage(t, "/limited") > before+time.Second/2 })
	counted, used := usage(t, "/limited")-before, group[0].cpuTime(t)+group[1].cpuTime(t)-had
	if off := (counted - used).Abs(); off > 100*time.Millisecond {
		t.Errorf("the cgroup has used %v, its tasks %v", counted, used)
	}

	write(t, root.Cgroup("/limited/memory.max"), strconv.Itoa(32<<20))
	hungry := exec.Command("sh", "-c", `echo 0 >"$1" && x=much && while :; do x=$x$x; done`, "sh", root.Cgroup("/limited/cgroup.procs"))
	if err := hungry.Run(); err == nil {
		t.Error("it has all memory that it wants")
	}
	if events := read(t, root.Cgroup("/limited/memory.events")); strings.Contains(events, "oom_kill 0\n") {
		t.Errorf("nobody was killed: %v, %s", hungry.ProcessState, events)
	}
	if s := kernel(t); !s.IsTemper() {
		t.Errorf("%+v", s)
	}
}

// Limits of other shapes: each must be kept, or not matter, and the node must live.
func TestKeptLimitsOfAllShapes(t *testing.T) {
	joinSystem(t)
	for _, cg := range []string{"/above/below", "/empty", "/background", "/critical"} {
		controlledCgroup(t, cg)
	}
	write(t, root.Cgroup("/empty/cpu.max"), "1000 100000")
	write(t, root.Cgroup("/above/cpu.max"), "20000 100000")
	attach(t, "--tier", "background="+root.Cgroup("/background"), "--tier", "critical="+root.Cgroup("/critical"))
	below := spin(t, "/above/below", 2)
	eventually(t, "the limit of the cgroup above is felt", func() bool { return limitOf(t, "/above").Holds > 10 })
	if holds := limitOf(t, "/empty").Holds; holds != 0 {
		t.Errorf("an empty cgroup holds %d", holds)
	}
	for _, s := range below {
		s.end()
	}

	// More than all CPUs have, and more than 64 bits hold of nanoseconds with 20 binary places.
	limit(t, "/wide", 1<<41*time.Microsecond, time.Second)
	used(t, 100*time.Millisecond, spin(t, "/wide", 2))
	if holds := limitOf(t, "/wide").Holds; holds != 0 {
		t.Errorf("a limit beyond all CPUs holds %d", holds)
	}

	// In the lowest tier, beside critical work on all CPUs.
	write(t, root.Cgroup("/background/cpu.max"), "50000 100000")
	background := spin(t, "/background", 2)
	spin(t, "/critical", runtime.NumCPU())
	used(t, time.Millisecond/2, background)
	if burst := os.WriteFile(root.Cgroup("/above/cpu.max.burst"), []byte("30000"), 0); burst == nil {
		t.Error("the kernel takes a burst beyond the quota: what does Temper make of it?")
	}
}

func TestLimitsThatAreIgnored(t *testing.T) {
	limit(t, "/limited/inner", 50*time.Millisecond, 100*time.Millisecond)
	l := attach(t, "--limits", "ignore")
	if s, err := enforce.ReadPinned(root.Pins()); err != nil || s.Info.Limits != enforce.LimitsIgnore {
		t.Errorf("%v: %+v", err, s)
	}
	if said := read(t, l.stderr); !strings.Contains(said, "/limited/inner/cpu.max") || !strings.Contains(said, "NOT kept") {
		t.Errorf("said %q", said)
	}
	used(t, 200*time.Millisecond, spin(t, "/limited/inner", 2))
}

// A cgroup beyond those that can be told apart has its parent's limit. It is said that its own is not kept, and until when.
func TestLimitsBeyondAllSlots(t *testing.T) {
	joinSystem(t)
	attach(t)
	seq := kernel(t).EnableSeq
	limit(t, "/known", 50*time.Millisecond, 100*time.Millisecond)
	slots := takeSlots(t)
	limit(t, "/known/crowded", 20*time.Millisecond, 100*time.Millisecond)
	group := spin(t, "/known/crowded", 2)
	eventually(t, "the limit above is felt", func() bool { return limitOf(t, "/known").Holds > 10 })
	s := look(t)
	if s.Crowded != 1 || !slices.ContainsFunc(s.Problems, func(p string) bool { return strings.Contains(p, "1 cgroups are beyond") }) {
		t.Errorf("%d, %q", s.Crowded, s.Problems)
	}
	for _, l := range s.Limits {
		if l.Cgroup != "/known" {
			t.Errorf("%+v", l)
		}
	}
	for _, s := range group {
		s.end()
	}
	if err := os.Remove(root.Cgroup("/known/crowded")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody is crowded", func() bool { return look(t).Crowded == 0 })
	slots.giveBack(t)
	limit(t, "/known/again", 20*time.Millisecond, 100*time.Millisecond)
	spin(t, "/known/again", 2)
	eventually(t, "a slot is found again", func() bool { return limitOf(t, "/known/again").Holds > 10 })
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Errorf("%+v, enable_seq was %d", s, seq)
	}
}

// slots are those of the attached scheduler that no cgroup has.
type slots struct {
	free *ebpf.Map
	all  []uint32
}

func takeSlots(t *testing.T) *slots {
	t.Helper()
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if err != nil {
			t.Fatal("no map free_slots: ", err)
		}
		id = next
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue // it has gone meanwhile
		}
		info, err := m.Info()
		if err != nil || info.Name != "free_slots" {
			m.Close()
			continue
		}
		t.Cleanup(func() { m.Close() })
		s := &slots{free: m}
		for slot := uint32(0); m.LookupAndDelete(nil, &slot) == nil; {
			s.all = append(s.all, slot)
		}
		if len(s.all) == 0 {
			t.Fatal("no slot was free")
		}
		return s
	}
}

func (s *slots) giveBack(t *testing.T) {
	t.Helper()
	for _, slot := range s.all {
		if err := s.free.Put(nil, slot); err != nil {
			t.Fatal(err)
		}
	}
}

// A kernel that tells no scheduler of limits, and does not say where it keeps them.
func TestLimitsThatCannotBeKeptAreRefused(t *testing.T) {
	limit(t, "/limited/inner", 50*time.Millisecond, 100*time.Millisecond)
	refused(t, exit.LimitsPresent, "/limited/inner/cpu.max", withTypes(t, func(typ btf.Type) {
		hidden := map[string]string{"sched_ext_ops": "cgroup_set_bandwidth", "cfs_bandwidth": "quota"}
		if s, ok := typ.(*btf.Struct); ok {
			for i, m := range s.Members {
				if m.Name == hidden[s.Name] && m.Name != "" {
					s.Members[i].Name = "another"
				}
			}
		}
	}))
}

// A cgroup may have another mode than the node, and what is below it has that, too: beyond its limit it may use what nobody
// wants, or it is frozen. The limit of a cgroup above whose mode is stricter is kept.
func TestTimedModesOfCgroups(t *testing.T) {
	joinSystem(t)
	attach(t)
	const quota, period = 30 * time.Millisecond, 100 * time.Millisecond
	n := float64(runtime.NumCPU())
	limit(t, "/pod", quota, period)
	controlledCgroup(t, "/pod/container")
	group := spin(t, "/pod/container", 2*runtime.NumCPU())
	uses := func(what, mode string, least, most float64) {
		t.Helper()
		watchUse(t, group, 300*time.Millisecond, 1)
		if got := cpusUsed(watchUse(t, group, period, 12)); got < least || got > most {
			t.Errorf("%s: it uses %.3f CPUs", what, got)
		}
		if l := limitOf(t, "/pod"); l.Mode != mode {
			t.Errorf("%s: %+v", what, l)
		}
	}
	assign := func(cg, mode string) {
		changeTiers(t, cg, func(m enforce.TierMap, id uint64) error { return m.Set(id, enforce.Assign(tier.Standard, mode)) })
	}
	assign("/pod", config.LimitsGap)
	uses("with gaps", config.LimitsGap, 0.95*n, n)
	assign("/pod", config.LimitsFreeze)
	uses("frozen", config.LimitsFreeze, 0.28, 0.31)
	assign("/pod", "")
	uses("as the node", config.LimitsPaced, 0.28, 0.31)

	limit(t, "/pod/container", quota/3, period)
	assign("/pod/container", config.LimitsGap)
	watchUse(t, group, 2*period, 1)
	uses("with gaps within a limit without", config.LimitsPaced, 0.09, 0.31)
	if l := limitOf(t, "/pod/container"); l.Mode != config.LimitsGap {
		t.Errorf("%+v", l)
	}
	changeTiers(t, "/pod/container", enforce.TierMap.Delete)
	changeTiers(t, "/pod", enforce.TierMap.Delete)
}

// Before 6.17 the kernel tells of no limits, and they are read: as a scheduler comes, as a cgroup comes, and as they change.
func TestTimedLimitsThatAreRead(t *testing.T) {
	joinSystem(t)
	const period = 100 * time.Millisecond
	limit(t, "/before", 50*time.Millisecond, period)
	attach(t, "--read-limits")
	limit(t, "/above", 60*time.Millisecond, period)
	controlledCgroup(t, "/above/below")
	before, below := spin(t, "/before", 3), spin(t, "/above/below", 3)
	uses := func(what string, group []*spinner, least, most float64) {
		t.Helper()
		watchUse(t, group, 1500*time.Millisecond, 1) // a change is seen, and what comes at once is repaid
		if got := cpusUsed(watchUse(t, group, period, 10)); got < least || got > most {
			t.Errorf("%s: %.3f CPUs", what, got)
		}
	}
	uses("there before", before, 0.48, 0.51)
	uses("above", below, 0.58, 0.61)
	write(t, root.Cgroup("/above/cpu.max"), "90000 100000")
	uses("raised", below, 0.88, 0.91)
	write(t, root.Cgroup("/above/cpu.max"), "20000 50000")
	uses("lowered, with another period", below, 0.38, 0.41)
	write(t, root.Cgroup("/above/cpu.max"), "1000 1000000")
	eventually(t, "all wait", func() bool { return limitOf(t, "/above").Waiting == 3 })
	write(t, root.Cgroup("/above/cpu.max"), "max")
	uses("lifted", below, 1, float64(runtime.NumCPU()))
	for _, s := range append(before, below...) {
		s.end()
	}
	for _, cg := range []string{"/above/below", "/above", "/before"} {
		if err := os.Remove(root.Cgroup(cg)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "no limit is left", func() bool { return len(snapshot(t).Limits) == 0 })
}
