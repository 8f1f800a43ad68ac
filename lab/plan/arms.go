package plan

import "slices"

// Arm is one way to schedule the ladder.
type Arm struct {
	Name    string
	Preempt string // the kernel's preemption mode, as /sys/kernel/debug/sched/preempt names it
	Idle    bool   // cpu.idle=1 on the background cgroup, instead of cpu.weight=1
	Weight  int    // cpu.weight of the critical cgroup; 0: DefaultWeight
	Summary string

	ServicePolicy    Policy // of the service's threads
	BackgroundPolicy Policy // of the background workers

	Scheduler string   // that is attached, by the first word of the kernel's name for it; "": stock
	Command   []string // what attaches it, unless it is Temper
	Reserved  bool     // Temper has a reservation, of all CPUs of the application: critical never is beyond it
}

// Policy is a scheduling policy of threads, as the load programs name it (the load folder's load.h); "": the default.
type Policy string

// Policies that arms use.
const (
	FIFO      Policy = "fifo" // SCHED_FIFO, priority 1
	SchedIdle Policy = "idle" // SCHED_IDLE
)

// DefaultWeight is a cgroup's cpu.weight unless somebody writes another.
const DefaultWeight = 100

// ServiceThreads stands in an arm's command for what the service's threads are called. To scx_layered, threads that may not
// run on all CPUs, as those of the lab's services may not, come after all others unless it is told their name.
const ServiceThreads = "SERVICE_THREADS"

// Temper is the name of its scheduler.
const Temper = "temper"

// Arms are all that the lab knows. Debian's kernels boot with lazy preemption.
var Arms = []Arm{
	{Name: "eevdf", Preempt: "lazy", Summary: "stock, as the kernel boots; background has cpu.weight 1"},
	{Name: "eevdf-full", Preempt: "full", Summary: "stock, preempt=full; background has cpu.weight 1"},
	{Name: "cpuidle", Preempt: "full", Idle: true, Summary: "stock, preempt=full; background has cpu.idle=1"},
	{Name: "cpuidle-lazy", Preempt: "lazy", Idle: true, Summary: "stock, as the kernel boots; background has cpu.idle=1"},
	{Name: "weight-1", Preempt: "lazy", Weight: 1, Summary: "stock, as the kernel boots; service and background have cpu.weight 1 each"},
	{Name: "weight-10", Preempt: "lazy", Weight: 10, Summary: "the same, service 10"},
	{Name: "weight-100", Preempt: "lazy", Weight: 100, Summary: "the same, service 100: eevdf by another name"},
	{Name: "weight-1000", Preempt: "lazy", Weight: 1000, Summary: "the same, service 1000"},
	{Name: "weight-10000", Preempt: "lazy", Weight: 10000, Summary: "the same, service 10000, the most there is"},
	{Name: "sched-idle", Preempt: "lazy", BackgroundPolicy: SchedIdle,
		Summary: "stock, as the kernel boots; background threads are SCHED_IDLE"},
	{Name: "fifo", Preempt: "lazy", ServicePolicy: FIFO,
		Summary: "stock, as the kernel boots; the service is SCHED_FIFO, throttled by 6.18's fair server: 50 ms a second of each CPU for others"},
	{Name: "temper", Preempt: "lazy", Scheduler: Temper, Summary: "scx_temper, on the kernel as it boots"},
	{Name: "temper-full", Preempt: "full", Scheduler: Temper, Summary: "scx_temper, preempt=full"},
	{Name: "temper-reserved", Preempt: "lazy", Scheduler: Temper, Reserved: true,
		Summary: "scx_temper with a reservation, as a node of a cluster has it: of all application CPUs"},
	{Name: "simple", Preempt: "lazy", Scheduler: "simple", Command: []string{"scx_simple"}, Summary: "scx_simple, the kernel's own example: knows no background"},
	{Name: "lavd", Preempt: "lazy", Scheduler: "lavd", Command: []string{"scx_lavd", "--performance"}, Summary: "scx_lavd --performance"},
	{Name: "layered", Preempt: "lazy", Scheduler: "layered", Command: []string{"scx_layered", "--hi-fb-thread-name", ServiceThreads, "f:/etc/layered.json"},
		Summary: "scx_layered: the service in a layer that preempts, its threads in the high fallback queue"},
}

// FindArm returns the arm of that name, and whether there is one.
func FindArm(name string) (Arm, bool) {
	i := slices.IndexFunc(Arms, func(a Arm) bool { return a.Name == name })
	if i < 0 {
		return Arm{}, false
	}
	return Arms[i], true
}
