//go:build guest

package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/observe"
	"temper.dev/temper/lab/ladder"
)

// These tests measure time, so they run on the deterministic machine: 'make test-guest'.

// onCPU confines this process to a CPU, where it does not disturb what it observes.
func onCPU(t *testing.T, cpu int) {
	t.Helper()
	var set unix.CPUSet
	set.Set(cpu)
	threads, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		var tid int
		if _, err := fmt.Sscan(filepath.Base(thread), &tid); err != nil {
			t.Fatal(err)
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			t.Fatal(err)
		}
	}
}

// chainUnderLoad runs the chain of services on all CPUs but the last, beside spinners, and observes
// a second of it. With interrupt, a real-time task takes CPU 0 for a millisecond at a time.
func chainUnderLoad(t *testing.T, interrupt bool) observe.Report {
	t.Helper()
	cpus := runtime.NumCPU() - 1
	for stage := range 10 {
		controlledCgroup(t, fmt.Sprintf("/critical/s%d", stage))
	}
	background := spin(t, "/background", 4)
	var set unix.CPUSet
	for cpu := range cpus {
		set.Set(cpu)
	}
	for _, s := range background {
		if err := unix.SchedSetaffinity(s.pid, &set); err != nil {
			t.Fatal(err)
		}
	}
	if interrupt {
		startRealTime(t)
	}
	dir := t.TempDir()
	// Requests a second, iterations of a stage, warm-up, seconds, seed, steady, CPUs.
	chain := exec.Command("chain", fmt.Sprint(45*cpus), fmt.Sprint(ladder.LabIterations), "0.5", "20", "1", "0", fmt.Sprint(cpus), filepath.Join(dir, "latency"))
	chain.Env = []string{"LADDER_DIR=" + dir, "LADDER_CGROUPS=" + root.Cgroup("/")}
	chain.Stderr = os.Stderr
	if err := chain.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = chain.Process.Kill(), chain.Wait() }()
	eventually(t, "the chain serves", func() bool { return usage(t, "/critical/s9") > 100*time.Millisecond })
	cmd := exec.Command("temper", "observe", "--seconds", "1", "--background", "/background", "--critical", "/critical", "--json")
	code, stdout, stderr := finish(t, cmd)
	var r observe.Report
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
		t.Fatalf("temper observe: %d, %v: %s", code, err, stderr)
	}
	t.Logf("%d events, %d violations, total %.0f us, p50 %.0f, p99 %.0f, max %.0f, %d unknown tasks, %v",
		r.Events, r.Violations, r.TotalUS, r.P50US, r.P99US, r.MaxUS, r.UnknownTasks, r.Histogram)
	if r.Seconds < 0.9 || r.UnknownTasks > 0 {
		t.Errorf("the trace has %.3f s, and %d tasks without a role", r.Seconds, r.UnknownTasks)
	}
	return r
}

// usage is the CPU time of a cgroup.
func usage(t *testing.T, cg string) time.Duration {
	t.Helper()
	var us int64
	if _, err := fmt.Sscanf(read(t, root.Cgroup(cg+"/cpu.stat")), "usage_usec %d", &us); err != nil {
		t.Fatal(err)
	}
	return time.Duration(us) * time.Microsecond
}

// Under Temper, background gives way in the time that an interrupt and a context switch take. Stock
// shows that the observer sees what it should: there, background stays for milliseconds.
func TestTimedBackgroundNeverRunsWhileCriticalWaits(t *testing.T) {
	for _, cg := range []string{"/critical", "/background"} {
		controlledCgroup(t, cg)
	}
	write(t, root.Cgroup("/background/cpu.weight"), "1")
	onCPU(t, runtime.NumCPU()-1)
	var stock, temper observe.Report
	t.Run("stock", func(t *testing.T) { stock = chainUnderLoad(t, false) })
	t.Run("temper", func(t *testing.T) { attachTiers(t); temper = chainUnderLoad(t, false) })
	t.Run("temper, beside a real-time task", func(t *testing.T) {
		attachTiers(t)
		if r := chainUnderLoad(t, true); r.P99US > mostViolation || r.MaxUS > mostInterrupted {
			t.Errorf("background resumes ahead of critical work: %+v", r)
		}
	})
	if temper.P99US > mostViolation {
		t.Errorf("p99 of the violations is %.0f us", temper.P99US)
	}
	if stock.TotalUS < 5*temper.TotalUS || stock.P99US < 4*temper.P99US {
		t.Errorf("stock (%+v) violates little more than Temper (%+v): is the observer blind?", stock, temper)
	}
}

// In microseconds, on the lab's machine. Who is on the way to a CPU that the real-time task takes
// waits for the end of its millisecond.
const (
	mostViolation   = 150
	mostInterrupted = 1000 + mostViolation
)

func TestObserveRefusesBadInput(t *testing.T) {
	makeCgroup(t, "/batch")
	for _, c := range []struct {
		status int
		why    string
		args   []string
	}{
		{exit.Usage, "name a --background and a --critical", []string{"--background", "/batch"}},
		{exit.Usage, "relative", []string{"--background", "batch", "--critical", "/batch"}},
		{exit.Config, "no cgroup /none", []string{"--background", "/batch", "--critical", "/none"}},
		{exit.Usage, "both", []string{"--background", "/batch", "--critical", "/batch"}},
		{exit.Usage, "above 0", []string{"--seconds", "0", "--background", "/batch", "--critical", "/system.slice"}},
	} {
		if c.why == "above 0" {
			makeCgroup(t, "/system.slice")
		}
		code, _, stderr := temperCommand(t, append([]string{"observe"}, c.args...)...)
		if code != c.status || !strings.Contains(stderr, c.why) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: %d, %s", c.args, code, stderr)
		}
	}
}
