package observe

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseLine reads one line of tracefs's "trace":
//
//	spin-123     [001] d..2.    12.345678: sched_switch: prev_comm=... prev_pid=123 prev_prio=120 prev_state=R ==> next_comm=... next_pid=0 next_prio=120
//	<idle>-0     [000] dNh4.    12.345679: sched_wakeup: comm=... pid=45 prio=120 target_cpu=000
//
// A task's name may hold any character, so fields are looked for from where names cannot reach.
// isEvent is false for comments and for events that were not asked for.
func parseLine(line string) (e Event, isEvent bool, err error) {
	if line == "" || line[0] == '#' {
		return Event{}, false, nil
	}
	malformed := func(what string) (Event, bool, error) {
		return Event{}, false, fmt.Errorf("trace line without %s: %q", what, line)
	}
	kind, at := Switch, strings.Index(line, ": sched_switch: ")
	if at < 0 {
		kind = Wake
		if at = strings.Index(line, ": sched_wakeup"); at < 0 {
			return Event{}, false, nil
		}
	}
	head, body := line[:at], line[at+len(": "):]
	space := strings.LastIndexByte(head, ' ')
	if e.At, err = parseSeconds(head[space+1:]); err != nil {
		return malformed("a time")
	}
	open := strings.LastIndex(head, " [")
	if open < 0 || !digits(head[open+2:], "]", &e.CPU) {
		return malformed("a CPU")
	}
	e.Kind = kind
	if kind == Wake {
		if !digits(after(body, " pid="), " prio=", &e.PID) {
			return malformed("a pid")
		}
		return e, true, nil
	}
	// The next task's name may hold " ==> "; what is before the first one is the previous task's end.
	prev, next, found := strings.Cut(body, " ==> next_comm=")
	state := after(prev, " prev_state=")
	if !found || state == "" || !digits(after(prev, " prev_pid="), " prev_prio=", &e.PID) ||
		!digits(after(next, " next_pid="), " next_prio=", &e.Next) {
		return malformed("both tasks")
	}
	e.Preempted = state[0] == 'R'
	return e, true, nil
}

// after is what follows the last occurrence of a key.
func after(text, key string) string {
	if i := strings.LastIndex(text, key); i >= 0 {
		return text[i+len(key):]
	}
	return ""
}

// digits reads the number before end.
func digits(text, end string, into *int) bool {
	number, _, found := strings.Cut(text, end)
	n, err := strconv.Atoi(number)
	*into = n
	return found && err == nil
}

// parseSeconds reads "12.345678" without rounding.
func parseSeconds(text string) (time.Duration, error) {
	seconds, fraction, found := strings.Cut(text, ".")
	if !found || len(fraction) != 6 {
		return 0, fmt.Errorf("%q is no time in microseconds", text)
	}
	us, err := strconv.ParseInt(seconds+fraction, 10, 64)
	return time.Duration(us) * time.Microsecond, err
}
