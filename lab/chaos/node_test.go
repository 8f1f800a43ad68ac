package chaos

import "testing"

func TestComplaints(t *testing.T) {
	for line, want := range map[string]bool{
		"rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:":                                 true,
		"rcu: INFO: rcu_preempt self-detected stall on CPU":                                     true,
		"INFO: task churn:123 blocked for more than 120 seconds.":                               true,
		"watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [churn:123]":                         true,
		"WARNING: CPU: 1 PID: 77 at kernel/sched/ext.c:1234 dispatch_enqueue+0x1a/0x30":         true,
		`sched_ext: temper: runtime error`:                                                      true,
		`sched_ext: BPF scheduler "temper" disabled (runnable task stall)`:                      true,
		`sched_ext: BPF scheduler "temper" enabled`:                                             false,
		`sched_ext: BPF scheduler "temper" disabled (unregistered from the main kernel)`:        false,
		"smpboot: CPU 2 is now offline":                                                         false,
		"NET: Registered PF_PACKET protocol family, as the distribution's package installed it": false,
	} {
		if got := isComplaint(line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
