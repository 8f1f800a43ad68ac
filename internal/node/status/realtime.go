package status

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/node/enforce"
)

// forgotten is how long after the last sign of it a task is no longer told of: scx_temper sees it several times a second.
const forgotten = 2 * time.Second

// addRealTime tells of CPUs that real-time tasks have taken.
func (s *Status) addRealTime(hogs []enforce.Hog, monotonic time.Duration) {
	for cpu, h := range hogs {
		s.RTThrottles += h.Turns
		if h.SeenNs == 0 || monotonic-time.Duration(h.SeenNs) > forgotten {
			continue
		}
		r := RealTime{
			CPU: cpu, Thread: int(h.TID), Process: int(h.Process), Name: enforce.Text(h.Comm[:]), Policy: policyName(h.Policy), Priority: int(h.Priority),
			Seconds: max(0, (monotonic - time.Duration(h.SinceNs)).Round(time.Millisecond).Seconds()),
			Starves: h.Starves != 0, Obstacle: obstacle(unix.Errno(h.Error)), RTThrottles: h.Turns,
		}
		s.RealTime = append(s.RealTime, r)
		if text := r.Problem(); text != "" {
			s.problem("%s", text)
		}
	}
}

// Problem is what is wrong with that, and with an obstacle what to do; "": nobody waits for the CPU.
func (r RealTime) Problem() string {
	if !r.Starves {
		return ""
	}
	text := fmt.Sprintf("%s (process %d, thread %d), %s of priority %d, keeps others from CPU %d", r.Name, r.Process, r.Thread, r.Policy, r.Priority, r.CPU)
	if r.Obstacle == "" {
		return text + ": they have 50 ms of each second"
	}
	return text + ", and cannot be RT-throttled: " + r.Obstacle + "; after 30 s the kernel throws the scheduler out"
}

func policyName(policy uint32) string {
	if policy == unix.SCHED_RR {
		return "SCHED_RR"
	}
	return "SCHED_FIFO"
}

// obstacle is the errno of Hog.Error in words: three of them are scx_temper's own (sched/rt_throttle.c).
func obstacle(err unix.Errno) string {
	switch err {
	case 0:
		return ""
	case unix.ENOTSUP:
		return "it is a thread of the kernel"
	case unix.ESRCH:
		return "scx_temper does not see the node's processes (hostPID)"
	case unix.EAGAIN:
		return "somebody sets its policy back as often as it is lowered"
	}
	return err.Error()
}

func (s *Status) writeRealTime(w io.Writer) {
	fmt.Fprintln(w, "REAL-TIME TASK\tPROCESS\tTHREAD\tHAS CPU\tPOLICY\tPRIORITY\tFOR\tOTHERS WAIT\tRT THROTTLED")
	for _, r := range s.RealTime {
		wait := "no"
		if r.Starves {
			wait = "yes"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%d\t%.1f s\t%s\t%d times\n", r.Name, r.Process, r.Thread, r.CPU, r.Policy, r.Priority, r.Seconds, wait, r.RTThrottles)
	}
}
