//go:build guest

package guest

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a tiny limit throttles dies, stops, freezes, moves and changes its CPUs as anybody else does, though its turn is a
// long way off: forty others are before it, with four turns a second.
func throttledTasksObey(t *testing.T) {
	const cg = "/limited"
	limit(t, cg, time.Millisecond, time.Second)
	controlledCgroup(t, "/elsewhere")
	spin(t, cg, 40)
	throttledSpinner := func() *spinner {
		s := spin(t, cg, 1)[0]
		eventually(t, "it is throttled", func() bool { return limitOf(t, cg).Waiting == 41 })
		return s
	}
	stopped := throttledSpinner()
	promptly(t, "it stops", func() {
		stopped.cmd.Process.Signal(syscall.SIGSTOP)
		eventually(t, "it stops", func() bool { return stopped.state(t) == "T" })
	})
	stopped.cmd.Process.Kill()
	stopped.cmd.Wait()

	killed := throttledSpinner()
	promptly(t, "it dies", func() {
		killed.cmd.Process.Kill()
		killed.cmd.Wait()
	})

	frozen := throttledSpinner()
	promptly(t, "all freeze", func() {
		write(t, root.Cgroup(cg+"/cgroup.freeze"), "1")
		eventually(t, "all freeze", func() bool { return strings.Contains(read(t, root.Cgroup(cg+"/cgroup.events")), "frozen 1") })
	})
	write(t, root.Cgroup(cg+"/cgroup.freeze"), "0")
	frozen.cmd.Process.Kill()
	frozen.cmd.Wait()

	moved := throttledSpinner()
	promptly(t, "it changes its CPUs, moves and runs", func() {
		moved.pin(t, runtime.NumCPU()-1)
		moved.nice(t, 5)
		moved.moveTo(t, "/elsewhere")
		used(t, 100*time.Millisecond, []*spinner{moved})
	})
	moved.moveTo(t, cg)
	eventually(t, "it is throttled again", func() bool { return limitOf(t, cg).Waiting == 41 })
	promptly(t, "without the limit it runs", func() {
		write(t, root.Cgroup(cg+"/cpu.max"), "max")
		used(t, time.Millisecond, []*spinner{moved})
	})
	write(t, root.Cgroup(cg+"/cpu.max"), "1000 1000000")
	eventually(t, "all are throttled once more", func() bool { return limitOf(t, cg).Waiting == 41 })
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
	eventually(t, "no limit is left", func() bool { return len(snapshot(t).Limits) == 0 })
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
	eventually(t, "Temper keeps it", func() bool { return limitOf(t, "/limited").Throttles > 10 })
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
	eventually(t, "the limit of the cgroup above is felt", func() bool { return limitOf(t, "/above").Throttles > 10 })
	if throttles := limitOf(t, "/empty").Throttles; throttles != 0 {
		t.Errorf("an empty cgroup throttles %d times", throttles)
	}
	for _, s := range below {
		s.end()
	}

	// More than all CPUs have, and more than 64 bits hold of nanoseconds with 20 binary places.
	limit(t, "/wide", 1<<41*time.Microsecond, time.Second)
	used(t, 100*time.Millisecond, spin(t, "/wide", 2))
	if throttles := limitOf(t, "/wide").Throttles; throttles != 0 {
		t.Errorf("a limit beyond all CPUs throttles %d times", throttles)
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

// For a change of its priority the kernel takes a task out of the queue where it is throttled, and puts it back: not before the others.
func turnsOfWhoIsChanged(t *testing.T) {
	const cg, least, most = "/limited", 0.15, 0.35
	limit(t, cg, 20*time.Millisecond, 100*time.Millisecond)
	group := spin(t, cg, 4)
	changed, began := group[0], time.Now()
	before, all := changed.cpuTime(t), usage(t, cg)
	for i := 0; time.Since(began) < time.Second; i++ {
		changed.nice(t, 1+i%2)
		time.Sleep(time.Millisecond)
	}
	share := float64(changed.cpuTime(t)-before) / float64(usage(t, cg)-all)
	t.Logf("one of four, whose priority changes each millisecond, has %.3f of their time", share)
	if share < least || share > most {
		t.Errorf("want %.2f to %.2f", least, most)
	}
}
