package observe

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	at := 12345678 * time.Microsecond
	for line, want := range map[string]Event{
		`            spin-123     [001] d..2.    12.345678: sched_switch: prev_comm=spin prev_pid=123 prev_prio=120 prev_state=R+ ==> next_comm=swapper/1 next_pid=0 next_prio=120`: {At: at, Kind: Switch, CPU: 1, PID: 123, Next: 0, Preempted: true},
		`          <idle>-0       [012] d..2.    12.345678: sched_switch: prev_comm=swapper/12 prev_pid=0 prev_prio=120 prev_state=S ==> next_comm=a b next_pid=77 next_prio=120`:   {At: at, Kind: Switch, CPU: 12, Next: 77},
		`          <idle>-0       [000] dNh4.    12.345678: sched_wakeup: comm=web pid=45 prio=120 target_cpu=003`:                                                                  {At: at, Kind: Wake, CPU: 0, PID: 45},
		`              sh-9       [000] dNh4.    12.345678: sched_wakeup_new: comm=web pid=46 prio=120 target_cpu=003`:                                                              {At: at, Kind: Wake, CPU: 0, PID: 46},
		// Names as hostile as 15 characters allow.
		` [000] 1.000000-5       [001] d..2.    12.345678: sched_switch: prev_comm= prev_pid=1 p prev_pid=5 prev_prio=120 prev_state=D ==> next_comm= ==> next_com next_pid=6 next_prio=120`: {At: at, Kind: Switch, CPU: 1, PID: 5, Next: 6},
		` pid=1 prio=1-5         [001] d..2.    12.345678: sched_wakeup: comm= pid=1 prio=1 pid=6 prio=120 target_cpu=000`:                                                                   {At: at, Kind: Wake, CPU: 1, PID: 6},
	} {
		got, isEvent, err := parseLine(line)
		if err != nil || !isEvent || got != want {
			t.Errorf("%s\n%+v, %v, %v; want %+v", line, got, isEvent, err, want)
		}
	}
}

func TestParseLeavesOthersOut(t *testing.T) {
	for _, line := range []string{
		"", "# tracer: nop",
		`            spin-123     [001] d..2.    12.345678: sched_migrate_task: comm=spin pid=1 prio=120 orig_cpu=0 dest_cpu=1`,
	} {
		if e, isEvent, err := parseLine(line); isEvent || err != nil {
			t.Errorf("%q: %+v, %v", line, e, err)
		}
	}
}

func TestParseRefusesWhatItCannotRead(t *testing.T) {
	for _, line := range []string{
		`            spin-123     [001] d..2.    12345678: sched_wakeup: comm=web pid=45 prio=120 target_cpu=003`,
		`            spin-123     001 d..2.    12.345678: sched_wakeup: comm=web pid=45 prio=120 target_cpu=003`,
		`            spin-123     [001] d..2.    12.345678: sched_wakeup: comm=web pid=four prio=120 target_cpu=003`,
		`            spin-123     [001] d..2.    12.345678: sched_switch: prev_comm=spin prev_pid=123 prev_prio=120`,
	} {
		if _, _, err := parseLine(line); err == nil {
			t.Errorf("%q is taken for an event", line)
		}
	}
}
