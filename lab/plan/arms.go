package plan

import "slices"

// Arm is one way to schedule the ladder.
type Arm struct {
	Name    string
	Preempt string // the kernel's preemption mode, as /sys/kernel/debug/sched/preempt names it
	Idle    bool   // cpu.idle=1 on the background cgroup, instead of cpu.weight=1
	Summary string

	Scheduler string   // that is attached, by the first word of the kernel's name for it; "": stock
	Command   []string // what attaches it, unless it is Temper
}

// Temper is the name of its scheduler.
const Temper = "temper"

// Arms are all that the lab knows. Debian's kernels boot with lazy preemption.
var Arms = []Arm{
	{Name: "eevdf", Preempt: "lazy", Summary: "stock, as the kernel boots; background has cpu.weight 1"},
	{Name: "eevdf-full", Preempt: "full", Summary: "stock, preempt=full; background has cpu.weight 1"},
	{Name: "cpuidle", Preempt: "full", Idle: true, Summary: "stock, preempt=full; background has cpu.idle=1"},
	{Name: "cpuidle-lazy", Preempt: "lazy", Idle: true, Summary: "stock, as the kernel boots; background has cpu.idle=1"},
	{Name: "temper", Preempt: "lazy", Scheduler: Temper, Summary: "scx_temper, on the kernel as it boots"},
	{Name: "temper-full", Preempt: "full", Scheduler: Temper, Summary: "scx_temper, preempt=full"},
	{Name: "simple", Preempt: "lazy", Scheduler: "simple", Command: []string{"scx_simple"}, Summary: "scx_simple, the kernel's own example: knows no background"},
	{Name: "lavd", Preempt: "lazy", Scheduler: "lavd", Command: []string{"scx_lavd", "--performance"}, Summary: "scx_lavd --performance"},
	{Name: "layered", Preempt: "lazy", Scheduler: "layered", Command: []string{"scx_layered", "f:/etc/layered.json"},
		Summary: "scx_layered: the service in a layer that preempts"},
}

// FindArm returns the arm of that name, and whether there is one.
func FindArm(name string) (Arm, bool) {
	i := slices.IndexFunc(Arms, func(a Arm) bool { return a.Name == name })
	if i < 0 {
		return Arm{}, false
	}
	return Arms[i], true
}
