//go:build guest

package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Longest times that a task may go without a CPU at full load of the tiers above it.
const (
	standardBound   = 2 * time.Second
	backgroundBound = 20 * time.Second
)

// starved watches tasks for how long each goes without being run.
type starved struct {
	name  string
	bound time.Duration
	tasks []*spinner

	runs    []int
	since   []time.Time
	longest time.Duration
}

func (w *starved) look(t *testing.T) {
	t.Helper()
	now := time.Now()
	if w.runs == nil {
		w.runs, w.since = make([]int, len(w.tasks)), make([]time.Time, len(w.tasks))
	}
	for i, s := range w.tasks {
		if runs := s.runs(t); runs != w.runs[i] {
			w.runs[i], w.since[i] = runs, now
		}
		w.longest = max(w.longest, now.Sub(w.since[i]))
	}
}

func boundTo(t *testing.T, cg string, cpus []int) []*spinner {
	t.Helper()
	list := spin(t, cg, 2*len(cpus))
	for _, s := range list {
		bind(t, s.pid, cpus)
	}
	return list
}

func pinnedToEach(t *testing.T, cg string) []*spinner {
	t.Helper()
	list := spin(t, cg, runtime.NumCPU())
	for cpu, s := range list {
		s.pin(t, cpu)
	}
	return list
}

// A minute of nothing but critical work: nobody is ejected, nobody starves, and the kernel's own
// work, which no tier may hold up, goes on.
func everyTaskRunsAtFullCriticalLoad(t *testing.T) {
	before := kernel(t)
	n := runtime.NumCPU()
	// A weight is a share, not a licence to starve: the smallest there is beside the largest.
	for _, tier := range []string{"/critical", "/standard", "/background"} {
		for name, weight := range map[string]string{"/heavy": "10000", "/light": "1"} {
			controlledCgroup(t, tier+name)
			write(t, root.Cgroup(tier+name+"/cpu.weight"), weight)
		}
	}
	watched := []*starved{
		{name: "standard", bound: standardBound, tasks: spin(t, "/standard/heavy", n)},
		{name: "pinned standard", bound: standardBound, tasks: pinnedToEach(t, "/standard/heavy")},
		{name: "light standard", bound: standardBound, tasks: spin(t, "/standard/light", 1)},
		{name: "background", bound: backgroundBound, tasks: spin(t, "/background/heavy", n)},
		{name: "pinned background", bound: backgroundBound, tasks: pinnedToEach(t, "/background/heavy")},
		{name: "background on some CPUs", bound: backgroundBound, tasks: boundTo(t, "/background/heavy", firstCPUs(n-1))},
		{name: "light background", bound: backgroundBound, tasks: spin(t, "/background/light", 1)},
		{name: "critical", bound: standardBound, tasks: spin(t, "/critical/heavy", 2*n)},
		{name: "light critical", bound: standardBound, tasks: spin(t, "/critical/light", 1)},
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		for _, w := range watched {
			w.look(t)
		}
		promptly(t, "a cgroup is made and removed", func() { comeAndGo(t) })
		promptly(t, "a file is written and synced", func() { syncFile(t) })
		promptly(t, "a kernel thread of each CPU has run", func() { write(t, "/proc/sys/vm/stat_refresh", "1") })
		time.Sleep(100 * time.Millisecond) // between samples; what is waited for is the minute's end
	}
	for _, w := range watched {
		t.Logf("%s: longest time without a CPU %v, of %v", w.name, w.longest.Round(time.Millisecond), w.bound)
		if w.longest > w.bound {
			t.Errorf("%s: %v without a CPU", w.name, w.longest)
		}
	}
	if after := kernel(t); after != before {
		t.Errorf("the kernel said %+v before, %+v after", before, after)
	}
}

// Of 64 background tasks on a full node each has a turn every few seconds; one that is asked to die, stop or freeze has it
// at the next look at the queues.
func whoIsAskedToEndHasATurn(t *testing.T) {
	crowd := spin(t, "/background", 64)
	spin(t, "/critical", runtime.NumCPU())
	const bound = 500 * time.Millisecond
	within := func(what string, do func(), reached func() bool) {
		t.Helper()
		start := time.Now()
		do()
		eventually(t, what, reached)
		took := time.Since(start)
		t.Logf("%s within %v", what, took.Round(time.Millisecond))
		if took > bound {
			t.Errorf("%s only after %v", what, took)
		}
	}
	ask := func(s *spinner, signal unix.Signal, state string) {
		t.Helper()
		within(fmt.Sprintf("%v: it is in state %s", signal, state), func() {
			if err := unix.Kill(s.pid, signal); err != nil {
				t.Fatal(err)
			}
		}, func() bool { return s.state(t) == state })
	}
	for i := range 8 {
		ask(crowd[i], unix.SIGSTOP, "T")
		ask(crowd[i], unix.SIGCONT, "R")
		ask(crowd[8+i], unix.SIGKILL, "Z")
	}
	within("all are frozen", func() { write(t, root.Cgroup("/background/cgroup.freeze"), "1") },
		func() bool { return strings.Contains(read(t, root.Cgroup("/background/cgroup.events")), "frozen 1") })
	write(t, root.Cgroup("/background/cgroup.freeze"), "0")
}

// Somebody who is logged in types on a node that is full of critical work: the system tier answers.
func systemAnswersAtFullCriticalLoad(t *testing.T) {
	spin(t, "/critical", 2*runtime.NumCPU())
	const keys = 500
	took := echo(t, keys)
	slices.Sort(took)
	t.Logf("a key is echoed after %v (p50), %v (p99), %v (longest)", took[keys/2], took[keys*99/100], took[keys-1])
	if p99 := took[keys*99/100]; p99 > 10*time.Millisecond {
		t.Errorf("a key is echoed after %v (p99)", p99)
	}
}

// echo sends bytes to another program of this cgroup, and measures until each is back.
func echo(t *testing.T, keys int) []time.Duration {
	t.Helper()
	_, in, out := cat(t)
	took := make([]time.Duration, keys)
	for i := range took {
		time.Sleep(5 * time.Millisecond) // nobody types faster
		start := time.Now()
		if _, err := in.Write([]byte{'x'}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		took[i] = time.Since(start)
	}
	return took
}

// promptly checks that something is done within the bound for what the kernel has to do.
func promptly(t *testing.T, what string, do func()) {
	t.Helper()
	start := time.Now()
	do()
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("%s only after %v", what, took)
	}
}

// comeAndGo needs kernel workers: a cgroup is taken down by them.
func comeAndGo(t *testing.T) {
	t.Helper()
	dir := root.Cgroup("/critical-other")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
}

// syncFile starts the kernel's writeback, and waits for it.
func syncFile(t *testing.T) {
	t.Helper()
	write(t, filepath.Join(os.TempDir(), "synced"), "text")
	unix.Sync()
}
