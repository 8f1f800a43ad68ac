package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
)

// operation is one thing that users, or their programs, do.
type operation struct {
	name   string
	weight int // how often, beside the others
	do     func(*chaos) error
}

// calm operations change nobody's tier, and nobody's CPUs.
var calm = []operation{
	{"start a worker", 30, (*chaos).startOne},
	{"kill a worker", 12, toAWorker((*chaos).kill)},
	{"renice", 8, toAWorker((*chaos).renice)},
	{"change a weight", 8, (*chaos).reweigh},
	{"change a limit", 8, (*chaos).changeLimit},
	{"stop or continue", 10, toAWorker((*chaos).stopOrContinue)},
	{"freeze or thaw", 4, (*chaos).freezeOrThaw},
	{"trace", 4, toAWorker((*chaos).trace)},
	{"make and remove cgroups", 4, (*chaos).makeAndRemove},
}

var operations = append(slices.Clone(calm), []operation{
	{"move a worker", 12, toAWorker((*chaos).move)},
	{"change affinity", 12, toAWorker((*chaos).changeAffinity)},
	{"change the policy", 8, toAWorker((*chaos).changePolicy)},
	{"hog in real time", 3, (*chaos).hogInRealTime},
	{"change a CPU set", 4, (*chaos).changeCPUSet},
	{"change a tier", 4, (*chaos).changeTier},
	{"kill the loader", 1, (*chaos).killLoader},
	{"kill the agent", 1, (*chaos).killAgent},
	{"unplug a CPU", 1, (*chaos).unplug},
}...)

func (x *chaos) choose(from []operation) operation {
	for {
		total := 0
		for _, op := range from {
			total += op.weight
		}
		at := x.rand.IntN(total)
		for _, op := range from {
			if at -= op.weight; at >= 0 {
				continue
			}
			left, limited := x.limited[op.name]
			if limited && left == 0 {
				break
			}
			if limited {
				x.limited[op.name]--
			}
			return op
		}
	}
}

// isRefusal tells the kernel's ordinary answers to what comes too late, or asks for too much.
func isRefusal(err error) bool {
	for _, refusal := range []error{unix.ESRCH, unix.EINVAL, unix.EBUSY, unix.ENODEV, unix.ENOSPC, unix.EPERM, fs.ErrNotExist, os.ErrProcessDone} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// errNobody is an operation for which no worker is there.
var errNobody = fmt.Errorf("nobody to do it to: %w", unix.ESRCH)

func (x *chaos) anyCgroup() string { return x.cgroups[x.rand.IntN(len(x.cgroups))] }

// toAWorker does something to one that is there, whichever.
func toAWorker(do func(*chaos, *worker) error) func(*chaos) error {
	return func(x *chaos) error {
		if len(x.workers) == 0 {
			return errNobody
		}
		return do(x, x.workers[x.rand.IntN(len(x.workers))])
	}
}

func (x *chaos) startOne() error {
	if len(x.workers) >= mostAlive {
		return toAWorker((*chaos).kill)(x)
	}
	cg := x.anyCgroup()
	if x.frozen[cg] {
		return errNobody // whoever starts a process waits until it has called exec, which it never does there
	}
	return x.start(kinds[x.rand.IntN(len(kinds))], cg)
}

func (x *chaos) start(kind, cg string) error {
	w, err := startWorker(kind, cg, x.used%slots)
	if err != nil {
		return err
	}
	w.done = x.done(w)
	x.used++
	x.report.Workers++
	x.workers = append(x.workers, w)
	return nil
}

// kill kills a worker with its children. The kernel lets even what is stopped, frozen or parked die.
func (x *chaos) kill(w *worker) error {
	x.dying = append(x.dying, &dying{w, time.Now()})
	x.workers = slices.DeleteFunc(x.workers, func(other *worker) bool { return other == w })
	return unix.Kill(-w.pid(), unix.SIGKILL)
}

func (x *chaos) renice(w *worker) error {
	return unix.Setpriority(unix.PRIO_PROCESS, w.pid(), x.rand.IntN(40)-20)
}

func (x *chaos) reweigh() error {
	weights := []int{1, 10, 100, 300, 10000}
	return x.set(x.anyCgroup(), "cpu.weight", strconv.Itoa(weights[x.rand.IntN(len(weights))]))
}

// changeLimit sets or lifts a cpu.max: none so low that who waits for it seems to be lost. To the kernel's tracepoints
// who waits for a limit waits for a CPU: where they count, only those have one for whom nobody has to make way.
func (x *chaos) changeLimit() error {
	limits := []string{"max", "20000 100000", "150000 100000", "5000 10000", "1000 1000"}
	cg := x.anyCgroup()
	if !x.Fast {
		cg = "/background/a"
	}
	return x.set(cg, "cpu.max", limits[x.rand.IntN(len(limits))])
}

func (x *chaos) set(cg, file, value string) error {
	return os.WriteFile(root.Cgroup(cg+"/"+file), []byte(value), 0)
}

func (x *chaos) stopOrContinue(w *worker) error {
	signal := unix.SIGSTOP
	if w.held {
		signal = unix.SIGCONT
	}
	w.held = !w.held
	return unix.Kill(-w.pid(), signal)
}

func (x *chaos) freezeOrThaw() error {
	cg := x.anyCgroup()
	x.frozen[cg] = !x.frozen[cg]
	value := map[bool]string{true: "1", false: "0"}[x.frozen[cg]]
	return x.set(cg, "cgroup.freeze", value)
}

// trace has a worker stopped and let go by another process, as a debugger does.
func (x *chaos) trace(w *worker) error {
	if !x.stopsForTracer(w) {
		return errNobody
	}
	ctx, cancel := context.WithTimeout(context.Background(), x.bound(mostDying))
	defer cancel()
	err := exec.CommandContext(ctx, "churn", "trace", strconv.Itoa(w.pid())).Run()
	if ctx.Err() != nil {
		x.violation("%v does not stop for its tracer within %v; %s", w, x.bound(mostDying), describe(strconv.Itoa(w.pid())))
	}
	if err != nil && ctx.Err() == nil {
		return errNobody // it has just died
	}
	return nil
}

// stopsForTracer tells whether the kernel lets a debugger stop a worker. What is frozen does not stop; and who waits in
// vfork() does not before its child has called exec, which one that was stopped or is frozen, maybe in the cgroup that
// its parent has been moved out of, never does.
func (x *chaos) stopsForTracer(w *worker) bool {
	if w.kind == "exec" && (w.held || slices.Contains(slices.Collect(maps.Values(x.frozen)), true)) {
		return false
	}
	return !x.frozen[w.cgroup]
}

// makeAndRemove makes cgroups by the dozen, some nested, and removes them.
func (x *chaos) makeAndRemove() error {
	const n = 24
	var made []string
	parent := [...]string{"/critical", "/standard", "/background", "/mixed"}[x.rand.IntN(4)]
	for i := range n {
		cg := fmt.Sprintf("%s/churn-%d", parent, i)
		if i%3 == 2 {
			cg = made[len(made)-1] + "/inner"
		}
		if err := os.Mkdir(root.Cgroup(cg), 0o755); err != nil {
			return err
		}
		made = append(made, cg)
	}
	slices.Reverse(made)
	for _, cg := range made {
		if err := os.Remove(root.Cgroup(cg)); err != nil {
			return err
		}
	}
	return nil
}

func (x *chaos) move(w *worker) error {
	to := x.anyCgroup()
	if err := x.set(to, "cgroup.procs", strconv.Itoa(w.pid())); err != nil {
		return err
	}
	w.cgroup = to
	return nil
}

func (x *chaos) anyCPUs() *unix.CPUSet {
	var set unix.CPUSet
	for cpu := range runtime.NumCPU() {
		if x.rand.IntN(2) == 0 {
			set.Set(cpu)
		}
	}
	return &set
}

func (x *chaos) changeAffinity(w *worker) error {
	return unix.SchedSetaffinity(w.pid(), x.anyCPUs())
}

func (x *chaos) changePolicy(w *worker) error {
	policies := []uint32{unix.SCHED_NORMAL, unix.SCHED_BATCH, unix.SCHED_IDLE, unix.SCHED_EXT}
	return unix.SchedSetAttr(w.pid(), &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policies[x.rand.IntN(len(policies))]}, 0)
}

// hogInRealTime has a process take a CPU that nobody else then has. It ends by itself: whoever would
// have to end it might be queued behind it.
func (x *chaos) hogInRealTime() error {
	return exec.Command("churn", "hog", strconv.Itoa(5+x.rand.IntN(25))).Run()
}

func (x *chaos) changeCPUSet() error {
	cpu := x.rand.IntN(runtime.NumCPU())
	sets := []string{allCPUs(), fmt.Sprint(cpu), fmt.Sprintf("0-%d", cpu)}
	return x.set(x.anyCgroup(), "cpuset.cpus", sets[x.rand.IntN(len(sets))])
}

func allCPUs() string { return fmt.Sprintf("0-%d", runtime.NumCPU()-1) }

// changeTier has the agent give /mixed another tier, with all that is in it.
func (x *chaos) changeTier() error {
	x.agent.mixed = tier.All[x.rand.IntN(tier.Count)]
	if err := x.agent.writeConfig(); err != nil {
		return err
	}
	return x.agent.signal(unix.SIGHUP)
}

func (x *chaos) killLoader() error {
	s, err := agent.ReadState(root)
	if err != nil {
		return err
	}
	if s.Loader == 0 {
		return errNobody
	}
	return unix.Kill(s.Loader, unix.SIGKILL)
}

// killAgent kills it, and starts another while the scheduler still waits for a sign of life.
func (x *chaos) killAgent() error {
	if err := x.agent.end(unix.SIGKILL); err != nil {
		return err
	}
	if err := x.agent.start(); err != nil {
		return err
	}
	// A signal that came before it listens would end it.
	err := await("the agent's successor is there", x.bound(mostReturn), func() bool {
		s, err := agent.ReadState(root)
		return err == nil && s.PID == x.agent.cmd.Process.Pid
	})
	if err != nil {
		x.violation("%v; the kernel says: %s; it said: %s", err, describe(strconv.Itoa(x.agent.cmd.Process.Pid)), x.agent.said())
	}
	return nil
}

// unplug takes a CPU away and brings it back; the scheduler is loaded anew each time.
func (x *chaos) unplug() error {
	cpu := 1 + x.rand.IntN(runtime.NumCPU()-1)
	for _, online := range []string{"0", "1"} {
		if err := os.WriteFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu), []byte(online), 0); err != nil {
			return err
		}
		if err := awaitEnforced(x.bound(mostReattach)); err != nil {
			return fmt.Errorf("after CPU %d was put to %s: %w; the agent said: %s", cpu, online, err, x.agent.said())
		}
	}
	return nil
}
