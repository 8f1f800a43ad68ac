package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
)

// leastEjection is the first scx_exit_kind that means an error.
const leastEjection = 1024

// settle ends the attack, and checks that everything is as if it had not been.
func (x *chaos) settle() error {
	if err := x.letGo(); err != nil {
		return err
	}
	x.checkNobodyIsLost()
	if err := await("all workers are dead", 2*x.bound(mostDying), func() bool { x.watch(); return len(x.dying) == 0 }); err != nil {
		return err
	}
	if err := awaitEnforced(x.bound(mostReattach)); err != nil {
		x.violation("%v; the agent said: %s", err, x.agent.said())
		return nil
	}
	x.removeCgroups()
	if err := x.checkBooks(); err != nil {
		return err
	}
	if err := x.checkExits(); err != nil {
		return err
	}
	lines, err := complaints()
	for _, line := range lines {
		x.violation("the kernel says: %s", line)
	}
	return err
}

// letGo thaws, continues and unbinds everybody, lifts limits, and kills the hogs: who is left has every reason to get on.
func (x *chaos) letGo() error {
	for _, cg := range x.cgroups {
		if err := x.set(cg, "cgroup.freeze", "0"); err != nil {
			return err
		}
		if err := x.set(cg, "cpuset.cpus", allCPUs()); err != nil {
			return err
		}
		if err := x.set(cg, "cpu.max", "max"); err != nil {
			return err
		}
	}
	for _, w := range slices.Clone(x.workers) {
		if err := unix.Kill(-w.pid(), unix.SIGCONT); err != nil && !isRefusal(err) {
			return err
		}
		w.held = false
		if hogs[w.kind] {
			if err := x.kill(w); err != nil && !isRefusal(err) {
				return err
			}
		}
	}
	return nil
}

// checkNobodyIsLost waits, tier by tier, until each worker that is left has got on, and kills those of the
// tier: many never sleep for long, and keep the tiers below from running.
func (x *chaos) checkNobodyIsLost() {
	members := map[tier.Tier][]*worker{}
	for _, w := range x.workers {
		t := x.lowestTier(w)
		members[t] = append(members[t], w)
	}
	for _, t := range tier.All {
		lost := map[*worker]uint64{}
		for _, w := range members[t] {
			lost[w] = x.work.rounds(w.slot)
		}
		_ = await("everybody gets on", x.bound(mostReturn), func() bool {
			for w, before := range lost {
				if w.isOver() || x.work.rounds(w.slot) != before {
					delete(lost, w)
				}
			}
			return len(lost) == 0
		})
		for w := range lost {
			x.violation("%v is lost: it has not got on in %v with nobody above it; %s", w, x.bound(mostReturn), describe(fmt.Sprint(w.pid())))
		}
		for _, w := range members[t] {
			_ = x.kill(w) // one that has just ended by itself is dead, too
		}
	}
}

// lowestTier is that of a worker or of the child that it waits for: who is moved leaves its child where it was started.
func (x *chaos) lowestTier(w *worker) tier.Tier {
	lowest := x.tierOf(w.cgroup)
	for child := range strings.FieldsSeq(children(fmt.Sprint(w.pid()))) {
		cgroup, _ := host.Read("/proc/" + child + "/cgroup")
		if cg, found := strings.CutPrefix(cgroup, "0::"); found { // else it has ended
			lowest = max(lowest, x.tierOf(cg))
		}
	}
	return lowest
}

func (x *chaos) tierOf(cgroup string) tier.Tier {
	switch top := strings.Split(cgroup, "/")[1]; top {
	case "system.slice":
		return tier.System
	case "mixed":
		return x.agent.mixed
	case "critical":
		return tier.Critical
	case "background":
		return tier.Background
	}
	return tier.Standard
}

// removeCgroups removes all that the attack has made, the inner ones first.
func (x *chaos) removeCgroups() {
	for _, top := range tops {
		for _, cg := range []string{top + "/b/c", top + "/b", top + "/a"} {
			// The kernel takes a moment to see that it is empty.
			err := await(cg+" is removed", x.bound(mostReturn), func() bool { return os.Remove(root.Cgroup(cg)) == nil })
			if err != nil {
				x.violation("%v%s", err, describeMembers(cg))
			}
		}
	}
}

func describeMembers(cg string) (text string) {
	procs, _ := host.Read(root.Cgroup(cg + "/cgroup.procs"))
	for pid := range strings.FieldsSeq(procs) {
		text += "; " + describe(pid)
	}
	return text
}

// describe is what the kernel says of a process's threads, and of those that its first has started and may wait for, for
// whoever has to find out why it hangs.
func describe(pid string) string {
	text, _ := host.Read("/proc/" + pid + "/cgroup")
	text += " "
	threads, _ := filepath.Glob("/proc/" + pid + "/task/*")
	for _, thread := range threads {
		stat, _ := host.Read(thread + "/stat")
		stack, _ := host.Read(thread + "/stack")
		text += stat + ": " + strings.ReplaceAll(stack, "\n", " ") + "; "
	}
	for child := range strings.FieldsSeq(children(pid)) {
		text += "its child " + describe(child)
	}
	return text
}

// children are the process ids of those that a process's first thread has started.
func children(pid string) string {
	text, _ := host.Read("/proc/" + pid + "/task/" + pid + "/children") // of one that is gone: none
	return text
}

// checkBooks waits until the scheduler's books are even. Its loader may just be replacing it, and its maps with it: the
// attack kills loaders to its end.
func (x *chaos) checkBooks() error {
	var wrong []string
	var err error
	for {
		// Somebody runs at any moment; nobody waits at every moment.
		_ = await("the scheduler's books are right", x.bound(mostReturn), func() bool {
			wrong, err = audit()
			return err != nil || len(wrong) == 0
		})
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err := awaitEnforced(x.bound(mostReattach)); err != nil {
			return err
		}
	}
	for _, w := range wrong {
		x.violation("with nobody left, the scheduler's %s", w)
	}
	return err
}

func (x *chaos) checkExits() error {
	s, err := agent.ReadState(root)
	if err != nil {
		return err
	}
	for _, e := range s.Exits {
		if e.Kind >= leastEjection {
			x.violation("the kernel threw the scheduler out: %s: %s", e.Reason, e.Message)
		}
	}
	left, err := filepath.Glob(root.SchedExt("root/*"))
	if err == nil && len(left) == 0 {
		x.violation("no scheduler is attached at the end; the agent said: %s", x.agent.said())
	}
	return err
}
