//go:build guest

package guest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// user is one without root, who was given a cgroup.
const user = 1000

// reach is what came of a trick, in a window of reachWakes wake-ups of a critical task.
type reach struct {
	refused bool    // the kernel did not let it
	used    float64 // CPUs that the cgroup had
	victims float64 // CPUs that standard work beside it had
	late    lateness
}

const reachWakes = 1000

// reachScene is a node that is full of standard work, with a cgroup for whoever tries something.
type reachScene struct {
	cg      string // the cgroup that was given
	victims []*spinner
	warmUp  time.Duration
}

func newReachScene(t *testing.T, cg string, victims []*spinner, warmUp time.Duration) *reachScene {
	t.Helper()
	controlledCgroup(t, cg)
	write(t, root.Cgroup(cg+"/cgroup.subtree_control"), "+cpu")
	return &reachScene{cg, victims, warmUp}
}

// give makes the cgroup's children, and has all of it belong to somebody.
func (s *reachScene) give(t *testing.T, uid int) {
	t.Helper()
	own := func(path string) {
		if err := os.Chown(path, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	own(root.Cgroup(s.cg))
	for _, file := range []string{"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		own(root.Cgroup(s.cg + "/" + file))
	}
	for _, child := range []string{"/a", "/b"} {
		dir := root.Cgroup(s.cg + child)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		own(dir)
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			own(dir + "/" + f.Name())
		}
	}
}

// clear ends all that is in the cgroup, and removes its children.
func (s *reachScene) clear(t *testing.T, main *exec.Cmd) {
	t.Helper()
	var pids []int
	for _, child := range []string{"/a", "/b"} {
		for _, pid := range strings.Fields(read(t, root.Cgroup(s.cg+child+"/cgroup.procs"))) {
			n, _ := strconv.Atoi(pid)
			pids = append(pids, n)
		}
	}
	write(t, root.Cgroup(s.cg+"/cgroup.kill"), "1")
	_ = main.Wait()
	eventually(t, "they are gone", func() bool {
		return strings.Contains(read(t, root.Cgroup(s.cg+"/cgroup.events")), "populated 0")
	})
	for _, pid := range pids { // who made himself a child of this process
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	below, err := os.ReadDir(root.Cgroup(s.cg + "/b"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range below {
		if entry.IsDir() {
			removeCgroup(t, s.cg+"/b/"+entry.Name())
		}
	}
	removeCgroup(t, s.cg+"/a")
	removeCgroup(t, s.cg+"/b")
}

// begin has somebody try a trick until clear(). It says whether the kernel refuses it.
func (s *reachScene) begin(t *testing.T, trick, who string) (cmd *exec.Cmd, refused bool) {
	t.Helper()
	uid := user
	if who == "container" {
		uid = 0
	}
	s.give(t, uid)
	write(t, root.Cgroup("/standard/cgroup.freeze"), "1") // in a low tier it might not get ready
	dir, err := os.Open(root.Cgroup(s.cg + "/a"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd = exec.Command("reach", trick, root.Cgroup(s.cg), who)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.(*os.File).SetReadDeadline(time.Now().Add(20 * time.Second))
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.clear(t, cmd)
		t.Fatalf("%s: it has not begun: %v", trick, err)
	}
	write(t, root.Cgroup("/standard/cgroup.freeze"), "0")
	time.Sleep(s.warmUp)
	return cmd, said != "\n"
}

// try has somebody try a trick, beside a critical task on the first CPU.
func (s *reachScene) try(t *testing.T, trick, who string) (r reach) {
	t.Helper()
	cmd, refused := s.begin(t, trick, who)
	defer s.clear(t, cmd)
	r.refused = refused
	sample := func() (mine, theirs time.Duration, at time.Time) {
		for _, v := range s.victims {
			theirs += v.cpuTime(t)
		}
		return usage(t, s.cg), theirs, time.Now()
	}
	mine, theirs, began := sample()
	r.late = measureLateness(t, reachWakes)
	mineThen, theirsThen, ended := sample()
	took := float64(ended.Sub(began))
	r.used, r.victims = float64(mineThen-mine)/took, float64(theirsThen-theirs)/took
	return r
}

// reachRow is a trick, who tries it, and what it may gain at most. A bound that is not stated is that of a spinner.
type reachRow struct {
	trick, who string
	refused    bool          // the kernel is to say no
	section    bool          // it is boosted for a 32nd of the time (SECTION_SHARE of sched/inheritance.bpf.h), up to 2 ms at a time
	beyond     float64       // CPUs that it has beyond its limit, for who waits for it and has none
	beside     float64       // CPUs that it has in background beside, to end before its own tier, or with preemption off
	kernel     float64       // CPUs that the kernel spends on it beside, in the name of nobody
	late       time.Duration // of critical, at the 99.9th percentile, and half of the most; 0: 1 ms
}

// quickReach are those that were ways out once, and what a spinner gets: CI runs them. `make reach` runs all.
var quickReach = []reachRow{
	{trick: "spin", who: "user"},
	{trick: "vfork-sibling", who: "user"},
	{trick: "filters", who: "user", section: true},
	{trick: "fight", who: "user"},
	{trick: "rcu", who: "container", section: true},
	{trick: "terminals", who: "user", kernel: 2, late: 12 * time.Millisecond}, // its workers edit and echo, in turns that a tick ends
	{trick: "controllers", who: "user", beyond: 0.1, beside: 0.1, kernel: 0.15, late: 2 * time.Millisecond}, // workers of the kernel wait for it, and clear cgroups away
	{trick: "core", who: "user", beside: 0.08, late: 2 * time.Millisecond},                                  // 1 ms at once
}

var allReach = []reachRow{
	{trick: "vfork", who: "user"},
	{trick: "processes", who: "user"},
	{trick: "processes", who: "container"},
	{trick: "threads", who: "user"},
	{trick: "cgroups", who: "user", kernel: 0.15, late: 2 * time.Millisecond}, // its workers clear them away
	{trick: "names", who: "user"},
	{trick: "names", who: "container"},
	{trick: "nice", who: "user"},
	{trick: "autogroup", who: "user"},
	{trick: "policy", who: "user"},
	{trick: "idle", who: "user"},
	{trick: "deadline", who: "user", refused: true},
	{trick: "deadline", who: "container", refused: true},
	{trick: "clamps", who: "user"},
	{trick: "affinity", who: "user", kernel: 0.15}, // its thread of each CPU moves tasks
	{trick: "yield", who: "user"},
	{trick: "ping", who: "user"},
	{trick: "nap", who: "user"},
	{trick: "fork", who: "user"},
	{trick: "exit", who: "user"},
	{trick: "signals", who: "user"},
	{trick: "timers", who: "user"},
	{trick: "membarrier", who: "user"},
	{trick: "namespaces", who: "user", kernel: 0.15, late: 4 * time.Millisecond}, // its workers clear them away, in turns of 3 ms
	{trick: "ring-poll", who: "user"},
	{trick: "ring-workers", who: "user"},
	{trick: "futex-pi", who: "user"},
	{trick: "ptrace", who: "user"},
	{trick: "stops", who: "user"},
	{trick: "freezer", who: "user"},
	{trick: "stop-read", who: "user"},
	{trick: "robust", who: "user", late: 2 * time.Millisecond},
	{trick: "sockets", who: "user", kernel: 0.6, late: 12 * time.Millisecond},              // its worker looks for them with preemption off
	{trick: "packets", who: "user", kernel: 0.4, beside: 0.01, late: 3 * time.Millisecond}, // 2 ms at once, with preemption off
}

const reachLimit = 0.2 // CPUs

func TestTimedReach(t *testing.T) { tryAll(t, quickReach) }

func TestNightlyReach(t *testing.T) { tryAll(t, allReach) }

// tryAll measures what somebody gains who was given a cgroup, in CPU time over its due and in delay for others.
func tryAll(t *testing.T, rows []reachRow) {
	attachTiers(t)
	victims := spin(t, "/standard", runtime.NumCPU())
	limit(t, "/given", 20*time.Millisecond, 100*time.Millisecond)
	limited := newReachScene(t, "/given", victims, 300*time.Millisecond)
	background := newReachScene(t, "/background/given", victims, 300*time.Millisecond)
	for _, row := range rows {
		t.Run(row.trick+" "+row.who, func(t *testing.T) {
			// A window is one draw, and its p99.9 one wake-up: where one is beyond the bounds, two of three have to be within.
			for within, beyond := 0, 0; within < 2; {
				l, b := limited.try(t, row.trick, row.who), background.try(t, row.trick, row.who)
				t.Logf("limited: %v", l)
				t.Logf("background: %v", b)
				problems := row.problems(l, b)
				if len(problems) == 0 && beyond == 0 {
					return
				}
				if len(problems) == 0 {
					within++
					continue
				}
				t.Log(strings.Join(problems, "; "))
				if beyond++; beyond == 2 {
					t.Fatal("beyond the bounds in two windows")
				}
			}
		})
	}
}

// problems are what is beyond the row's bounds in a window with a limit, and one in background.
func (row reachRow) problems(l, b reach) (list []string) {
	n := float64(runtime.NumCPU())
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if l.refused != row.refused || b.refused != row.refused {
		say("refused: %v, %v", l.refused, b.refused)
	}
	section, late := 0., max(time.Millisecond, row.late)
	if row.section {
		section, late = n/32, 3*time.Millisecond
	}
	// A cgroup's use is told as of the last tick of each CPU.
	if most := reachLimit*1.03 + section + row.beyond; l.used > most {
		say("limited to %.2f CPUs it uses %.4f, more than %.4f", reachLimit, l.used, most)
	}
	if most := n*mostBackground + section + row.beside; b.used > most {
		say("background has %.4f CPUs, more than %.4f", b.used, most)
	}
	for _, r := range []reach{l, b} {
		if least := n - r.used - 0.1 - row.kernel; r.victims < least {
			say("who stands beside it has %.4f CPUs, less than %.4f", r.victims, least)
		}
		if r.late.p999 > late || r.late.longest > 2*late {
			say("critical is late by %v, want p99.9 within %v and the longest within %v", r.late, late, 2*late)
		}
	}
	return list
}

func (r reach) String() string {
	return fmt.Sprintf("it uses %.4f CPUs, standard %.4f; critical late by %v", r.used, r.victims, r.late)
}
