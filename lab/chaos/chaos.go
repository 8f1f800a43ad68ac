package chaos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/observe"
)

// What is promised, in guest time. They are bounds for a machine of 167 million instructions a second.
// On a machine in the host's time, which others use too, they are longer by patience.
const (
	patience = 4

	mostStall    = 20 * time.Second // of a task that wants to go on, in whatever tier
	mostDying    = 5 * time.Second  // of a task that has been killed
	mostReturn   = 5 * time.Second  // of a task after all that was ahead of it has gone
	mostOrphaned = 10 * time.Second // of the scheduler without a loader, before it leaves by itself: the agent's default
	mostReattach = 60 * time.Second // after CPUs came or went: the scheduler is verified and loaded anew
	mostReading  = 90 * time.Second // of what the tracepoints say, beside fork storms that are in the system tier, too
	mostOverrun  = 10000.0          // us that background runs while others wait
)

// Config is one attack.
type Config struct {
	Seed       int64
	Operations int
	Soak       time.Duration // instead of operations: critical work on all CPUs for so long
	Fast       bool          // the machine's time is its host's: nobody can tell who kept whom waiting
	OnHang     func(Report)  // called, from another goroutine, when the attack itself does not get on; does not return
}

// MostTime is the most guest time that an attack takes: to get ready, to settle, and what comes between.
func (c Config) MostTime() time.Duration {
	return c.Soak + c.bound(2*mostReattach+calms*mostReading+time.Duration(c.Operations)*100*time.Millisecond)
}

// calms is how often the attack is observed.
const calms = 2

// bound is a promise on the machine at hand.
func (c Config) bound(promised time.Duration) time.Duration {
	if c.Fast {
		return patience * promised
	}
	return promised
}

// chaos is one attack under way.
type chaos struct {
	Config
	rand    *rand.Rand
	report  Report
	agent   victim
	work    work
	cgroups []string // in which workers may be
	workers []*worker
	dying   []*dying
	used    int             // slots
	frozen  map[string]bool // cgroups
	limited map[string]int  // operations that may be done a few times only: how often they may still be
	doing   atomic.Value    // name of the operation under way
}

// dying is a worker that has been killed.
type dying struct {
	*worker
	since time.Time
}

// tops are the cgroups that have a tier.
var tops = []string{"/critical", "/standard", "/background", "/mixed", "/system.slice"}

func nativeUint64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// Run attacks the node that it is called on. What keeps it from going on is a violation, too.
func Run(c Config) Report {
	x := &chaos{
		Config: c, rand: rand.New(rand.NewPCG(uint64(c.Seed), 1)),
		report: Report{
			Seed:       c.Seed,
			Operations: map[string]int{}, Refused: map[string]int{}, StalledMS: map[string]float64{}, Violations: []string{},
		},
		agent: victim{mixed: tier.Standard, heartbeat: c.bound(mostOrphaned)}, frozen: map[string]bool{},
		limited: map[string]int{"kill the loader": 3, "kill the agent": 2, "unplug a CPU": 0},
	}
	// It costs the scheduler's verification twice. Fast machines are spared: there the kernel itself may hang (docs/decisions/0011).
	if x.rand.IntN(4) == 0 && !c.Fast {
		x.limited["unplug a CPU"] = 1
	}
	// Workers die with the thread that started them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer x.watchdog(c.OnHang).Stop()
	main := x.attack
	if c.Soak > 0 {
		main = x.soak
	}
	for _, part := range []struct {
		name string
		do   func() error
	}{{"prepare", x.prepare}, {"attack", main}, {"settle", x.settle}} {
		x.doing.Store(part.name)
		if err := part.do(); err != nil {
			x.violation("%s: %v", part.name, err)
			break
		}
	}
	return x.report
}

func (x *chaos) violation(format string, args ...any) {
	x.report.Violations = append(x.report.Violations, fmt.Sprintf(format, args...))
}

// watchdog tells, after more time than an attack can take, what it does not get on with, and what the kernel
// says of everybody.
func (x *chaos) watchdog(onHang func(Report)) *time.Timer {
	return time.AfterFunc(x.MostTime(), func() {
		hangs := fmt.Sprintf("the attack hangs: %v", x.doing.Load())
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			comm, _ := host.Read(dir + "/comm")
			if comm == "churn" || comm == "chaos" || comm == "temper" || comm == "scx_temper" {
				hangs += "\n" + describe(filepath.Base(dir))
			}
		}
		onHang(Report{Seed: x.Seed, Violations: []string{hangs}})
	})
}

func (x *chaos) prepare() error {
	if err := os.MkdirAll(agentFiles, 0o755); err != nil {
		return err
	}
	var err error
	if x.work, err = openWork(agentFiles); err != nil {
		return err
	}
	if err := joinSystem(); err != nil {
		return err
	}
	for _, top := range tops {
		for _, cg := range []string{top, top + "/a", top + "/b", top + "/b/c"} {
			if err := makeCgroup(cg); err != nil {
				return err
			}
		}
		x.cgroups = append(x.cgroups, top+"/a", top+"/b/c")
	}
	// Tasks may not be in a cgroup that hands controllers on.
	for _, cg := range x.cgroups {
		if err := os.WriteFile(root.Cgroup(cg+"/cgroup.subtree_control"), []byte("-cpu -cpuset"), 0); err != nil {
			return err
		}
	}
	if err := x.agent.writeConfig(); err != nil {
		return err
	}
	if err := x.agent.start(); err != nil {
		return err
	}
	if err := awaitEnforced(x.bound(mostReattach)); err != nil {
		return fmt.Errorf("%w; the agent said: %s", err, x.agent.said())
	}
	return nil
}

// attack does what the seed says, and has the node observed in between.
func (x *chaos) attack() error {
	start := time.Now()
	defer func() { x.report.Seconds = time.Since(start).Seconds() }()
	for range calms {
		for range x.Operations / calms {
			if err := x.step(operations); err != nil {
				return err
			}
		}
		if x.Fast {
			continue
		}
		if err := x.observe(); err != nil {
			return err
		}
	}
	return nil
}

// step does one operation, and looks at everybody.
func (x *chaos) step(from []operation) error {
	op := x.choose(from)
	x.doing.Store(op.name)
	if err := op.do(x); err != nil {
		if !isRefusal(err) {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		x.report.Refused[op.name]++
	}
	x.report.Operations[op.name]++
	x.watch()
	time.Sleep(time.Duration(x.rand.IntN(8)) * time.Millisecond) // how fast the attack is
	return nil
}

// watch looks who has got on, and who has died.
func (x *chaos) watch() {
	now := time.Now()
	x.workers = slices.DeleteFunc(x.workers, (*worker).isOver)
	for _, w := range x.workers {
		done := x.done(w)
		if done != w.done || !x.wants(w) || x.frozen[w.cgroup] {
			w.done, w.since = done, now
			continue
		}
		stalled := now.Sub(w.since)
		x.report.StalledMS[w.cgroup] = max(x.report.StalledMS[w.cgroup], float64(stalled.Microseconds())/1e3)
		if stalled > x.bound(mostStall) && !w.reported {
			w.reported = true
			x.violation("%v has not got on for %v", w, stalled.Round(time.Millisecond))
		}
	}
	x.dying = slices.DeleteFunc(x.dying, func(d *dying) bool {
		if d.isOver() {
			return true
		}
		took := now.Sub(d.since)
		if took > x.bound(mostDying) {
			x.violation("%v was killed, and is not dead after %v; %s", d.worker, took.Round(time.Millisecond), describe(fmt.Sprint(d.pid())))
		}
		return took > x.bound(mostDying)
	})
}

// wants tells whether a worker should get on. In a soak, what is asked of one that sleeps for a lock is that its owner has turns.
func (x *chaos) wants(w *worker) bool {
	return w.wants() && (x.Soak == 0 || w.isRunnable())
}

// done is what shows that a worker gets on: its rounds; in a soak, where a round of background takes many turns, with
// seconds between them, its CPU time in ns.
func (x *chaos) done(w *worker) uint64 {
	if x.Soak == 0 {
		return x.work.rounds(w.slot)
	}
	return cpuTime(w.pid())
}

// readFirst reads a trace by a thread whose weight is the greatest: a reading is long work on a slow machine, and the
// attack's fork storms are of the same tier.
func readFirst(recorder *observe.Recorder) (observe.Trace, error) {
	// The attack's goroutine is locked to its thread already. What it starts has its weight, so that this is for now.
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, -20); err != nil {
		return observe.Trace{}, err
	}
	trace, err := recorder.Trace()
	return trace, errors.Join(err, syscall.Setpriority(syscall.PRIO_PROCESS, 0, 0))
}

// observe has the kernel's tracepoints tell for how long background runs while others wait. Meanwhile
// nobody changes tier or CPUs: the observer would not know.
func (x *chaos) observe() (err error) {
	roles := observe.Cgroups(map[string]observe.Role{
		"/critical": observe.Higher, "/standard": observe.Higher, "/background": observe.Background,
	})
	tasks := &observe.Tasks{Root: root, RoleOf: roles, Found: map[int]observe.Task{}}
	recorder, err := observe.NewRecorder(root, observe.BufferKB)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := recorder.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := tasks.Look(); err != nil {
		return err
	}
	if err := recorder.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		if err := x.step(calm); err != nil {
			return err
		}
	}
	if err := recorder.Stop(); err != nil {
		return err
	}
	if err := tasks.Look(); err != nil {
		return err
	}
	x.doing.Store("read what the tracepoints say")
	trace, err := readFirst(recorder)
	if err != nil {
		return err
	}
	seen := observe.Summarize(trace, tasks.Found, 0)
	x.report.Observed = append(x.report.Observed, seen)
	if l := seen.Longest; l != nil && l.US > mostOverrun {
		x.violation("CPU %d ran %s for %.1f ms while %s waited", l.CPU, l.Background, l.US/1e3, l.Waiting)
	}
	return nil
}
