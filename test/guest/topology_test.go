//go:build guest

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/enforce"
)

// These tests run on any machine with two cores or more, and are meant for several: 'make test-topologies'. Critical
// work is on CPU 0.

// topology is the CPUs of each core.
func topology(t *testing.T) (cores [][]int) {
	t.Helper()
	for cpu := range runtime.NumCPU() {
		list := read(t, root.Path(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)))
		core, err := cpuset.Parse(strings.TrimSpace(list))
		if err != nil {
			t.Fatal(err)
		}
		if first := core.List()[0]; first == cpu {
			cores = append(cores, core.List())
		}
	}
	if len(cores) < 2 {
		t.Fatalf("there is one core: run it with --topology")
	}
	return cores
}

func last[T any](list []T) T { return list[len(list)-1] }

// pinned starts a spinner in a cgroup on one CPU.
func pinned(t *testing.T, cg string, cpu int) []*spinner {
	t.Helper()
	s := spin(t, cg, 1)
	s[0].pin(t, cpu)
	return s
}

// checkWhoRuns lets spinners run that have a CPU each, and compares who gets it. By how much one host thread is faster
// than another is the host's affair, and so is a timer that comes late: on a busy host it makes of a turn of 0.25 ms each 250 ms
// 2 % of a CPU. One look of five has to be right.
func checkWhoRuns(t *testing.T, when string, due []bool, groups ...[]*spinner) {
	t.Helper()
	var got []float64
	for range 5 {
		got = used(t, second()/2, groups...)
		asDue := true
		for i, share := range got {
			asDue = asDue && (due[i] && share > 0.1 || !due[i] && share < 0.05)
		}
		if asDue {
			return
		}
	}
	t.Errorf("%s the spinners have shares of %.3f; due is %v", when, got, due)
}

func TestTopologyExclusiveKeepsSiblingsFree(t *testing.T) {
	cores := topology(t)
	attachTiers(t, "--smt", "exclusive")
	groups, due := [][]*spinner{pinned(t, "/background", last(cores)[0])}, []bool{true}
	smt := len(cores[0]) > 1
	if smt {
		groups, due = append(groups, pinned(t, "/background", last(cores[0]))), append(due, true)
	}
	checkWhoRuns(t, "alone", due, groups...)
	critical := pinned(t, "/critical", 0)
	if smt {
		due[1] = false
	}
	checkWhoRuns(t, "with critical work on CPU 0", append(due, true), append(groups, critical)...)
	critical[0].end()
	if smt {
		due[1] = true
		if snapshot(t).Stats.LoanBack == (enforce.Hist{}) {
			t.Error("no CPU was given back")
		}
	}
	checkWhoRuns(t, "when it has ended", due, groups...)
}

func TestTopologySharedSiblingsWork(t *testing.T) {
	cores := topology(t)
	attachTiers(t)
	groups, due := [][]*spinner{pinned(t, "/background", last(cores)[0]), pinned(t, "/critical", 0)}, []bool{true, true}
	if len(cores[0]) > 1 {
		groups, due = append(groups, pinned(t, "/background", last(cores[0]))), append(due, true)
	}
	checkWhoRuns(t, "sharing cores", due, groups...)
}

func TestTopologyFences(t *testing.T) {
	cores := topology(t)
	fence := cpuset.New(last(cores)...)
	for _, c := range []struct {
		loans            string
		alone, underLoad bool // does background run in the fence?
	}{
		{"gaps", true, true}, {"idle", true, false}, {"never", false, false},
	} {
		t.Run(c.loans, func(t *testing.T) {
			attachTiers(t, "--fence", fence.String(), "--loans", c.loans)
			// Where each core is one CPU, and two are all, it is beside the critical work, and waits.
			free := last(last(cores[:len(cores)-1]))
			inside, outside := pinned(t, "/background", last(last(cores))), pinned(t, "/background", free)
			checkWhoRuns(t, "without critical work", []bool{c.alone, true}, inside, outside)
			critical := pinned(t, "/critical", 0)
			checkWhoRuns(t, "with critical work elsewhere", []bool{c.underLoad, free != 0, true}, inside, outside, critical)
			critical[0].end()
			checkWhoRuns(t, "after it", []bool{c.alone, true}, inside, outside)
		})
	}
}

// Critical work that wakes up beside other critical work moves to a core that is idle.
func TestTopologyCriticalSpreadsOverCores(t *testing.T) {
	core := cpuset.New(topology(t)[0]...)
	attachTiers(t)
	pinned(t, "/critical", 0)
	checkWhereItWakes(t, last(core.List()), cpuset.New(firstCPUs(runtime.NumCPU())...).Difference(core))
}

// Where its CPU is taken, it moves to one that shares the last-level cache.
func TestTopologyCriticalStaysNearItsCache(t *testing.T) {
	const cpu = "/sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list"
	before := last(firstCPUs(runtime.NumCPU()))
	sharers, err := cpuset.Parse(strings.TrimSpace(read(t, root.Path(fmt.Sprintf(cpu, before)))))
	if err != nil {
		t.Fatal(err)
	}
	attachTiers(t)
	caches := 1
	if sharers.Size() < runtime.NumCPU() {
		caches = runtime.NumCPU() / sharers.Size()
	}
	if got := int(snapshot(t).Info.LLCs); got != caches {
		t.Errorf("scx_temper sees %d last-level caches; there are %d", got, caches)
	}
	pinned(t, "/critical", before)
	checkWhereItWakes(t, before, sharers.Difference(cpuset.New(before)))
}

// checkWhereItWakes has a critical task sleep on one CPU, where it may not stay, and counts how often it wakes up on those
// that are wanted.
func checkWhereItWakes(t *testing.T, before int, wanted cpuset.CPUSet) {
	t.Helper()
	var right int
	if _, err := fmt.Fscan(play(t, wakesRole+"=1", strconv.Itoa(before), wanted.String()).works, &right); err != nil {
		t.Fatal(err)
	}
	t.Logf("of %d times it woke up %d times on one of CPUs %s", wakes, right, wanted)
	if right < wakes/2 {
		t.Errorf("from CPU %d it does not go to one of CPUs %s", before, wanted)
	}
}

const (
	wakesRole = "TEMPER_TEST_WAKES"
	wakes     = 200
)

// wakeUp joins /critical, goes to a CPU and sleeps, free to wake up anywhere, and tells how often that was where it is
// wanted. It sleeps unseen by Go's runtime, which would have a thread look at it every 20 us.
func wakeUp(before, where string) {
	cpu, err := strconv.Atoi(before)
	if err != nil {
		panic(err)
	}
	wanted, err := cpuset.Parse(where)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(root.Cgroup("/critical/cgroup.procs"), []byte("0"), 0); err != nil {
		panic(err)
	}
	runtime.LockOSThread()
	right := 0
	for range wakes {
		for _, set := range []unix.CPUSet{cpuSet(cpu), cpuSet(firstCPUs(runtime.NumCPU())...)} {
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				panic(err)
			}
		}
		pause := unix.NsecToTimespec(int64(2 * time.Millisecond))
		unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
		if wanted.Contains(int(cpuHere())) {
			right++
		}
	}
	fmt.Println(right)
}

func cpuHere() uint32 {
	var cpu uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		panic(errno)
	}
	return cpu
}

func TestTopologyUsageErrors(t *testing.T) {
	cores := topology(t)
	cases := []struct{ why, option, value string }{
		{fmt.Sprintf("CPU 500 cannot be fenced: there are CPUs 0 to %d", runtime.NumCPU()-1), "--fence", "500"},
		{"not a list of CPUs: '1-'", "--fence", "1-"},
		{"not a list of CPUs: '3-2'", "--fence", "3-2"},
		{"no such way to lend: 'often'", "--loans", "often"},
		{"no such mode: 'both'", "--smt", "both"},
	}
	if core := cores[0]; len(core) > 1 {
		cases = append(cases, struct{ why, option, value string }{
			fmt.Sprintf("a fence has whole cores: CPU %d is on the core of CPU %d", core[0], last(core)), "--fence", strconv.Itoa(last(core))})
	}
	for _, c := range cases {
		refused(t, exit.Usage, c.why, exec.Command("scx_temper", c.option, c.value))
	}
	all := fmt.Sprintf("0-%d", runtime.NumCPU()-1)
	refused(t, exit.Usage, "background may run on none of them", exec.Command("scx_temper", "--fence", all, "--loans", "never"))
}

// The programs are other ones for the verifier where the kernel may have more than 64 CPUs, most with every option: it takes
// those, too.
func TestTopologyOfManyCPUs(t *testing.T) {
	const possible = "/sys/devices/system/cpu/possible"
	most := filepath.Join(t.TempDir(), "possible")
	if err := os.WriteFile(most, []byte("0-511\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(most, possible, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(possible, 0); err != nil {
			t.Fatal(err)
		}
	})
	core := cpuset.New(last(topology(t))...).String()
	attach(t, "--fence", core, "--loans", "idle", "--smt", "exclusive", "--reservation", "1")
	if n := snapshot(t).Info.NrCPUs; n != 512 {
		t.Errorf("it is attached for %d CPUs, want 512", n)
	}
}
