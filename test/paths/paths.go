// Package paths says how long the scheduler's programs may run. A test in a guest holds them to it, and the documents show it.
package paths

// Most is the bar for any of them, in instructions of one run.
const Most = 50_000

// Path is the longest run of a program, or of a function that a timer calls, with 10,000 tasks that wait.
type Path struct {
	Program      string
	Instructions int // at most, those of the kernel's functions that it calls among them
	Bound        string
}

// Longest has every program that runs while tasks come and go. Those that run once, as the scheduler or a cgroup comes or goes,
// may take their time.
var Longest = []Path{
	{"check_heartbeat", 8_000, "no loop"},
	{"end_protected_turn", 8_000, "no loop"},
	{"handoff_failed", 8_000, "one CPU is claimed"},
	{"look_at_waiting", 50_000, "LOOK_AT tasks or CPUs; one, where somebody waits for the CPU"},
	{"turn_is_over", 8_000, "no loop"},
	{"unthrottle", 50_000, "a turn unthrottles MOST_AT_ONCE tasks"},
	{"temper_cgroup_move", 8_000, "no loop: what a cgroup has is known since it was made"},
	{"temper_cgroup_set_bandwidth", 8_000, "no loop"},
	{"temper_cgroup_set_weight", 8_000, "no loop"},
	{"temper_contention_begin", 8_000, "a chain of LONGEST_CHAIN donations"},
	{"temper_contention_end", 8_000, "a chain of LONGEST_CHAIN donations"},
	{"temper_disable", 8_000, "no loop"},
	{"temper_dispatch", 50_000, "each of the queues of each tier, MOST_PASSED throttled tasks. Beside these, the kernel passes tasks that stand ahead and are bound to other CPUs"},
	{"temper_enable", 8_000, "no loop"},
	{"temper_enqueue", 10_000, "the words of a mask of CPUs, for each lower tier"},
	{"temper_running", 10_000, "the siblings of a CPU; the words of a mask of CPUs"},
	{"temper_select_cpu", 10_000, "the words of a mask of CPUs, for each lower tier"},
	{"temper_set_weight", 8_000, "no loop"},
	{"temper_stopping", 10_000, "the siblings of a CPU; a chain of LONGEST_CHAIN donations"},
	{"temper_tick", 8_000, "no loop"},
	{"temper_update_idle", 10_000, "the siblings of a CPU"},
}
