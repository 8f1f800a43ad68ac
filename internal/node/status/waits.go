package status

import (
	"fmt"
	"io"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/enforce"
)

// watchdogSeconds is how long a runnable task may wait before the kernel throws the scheduler out.
const watchdogSeconds = enforce.WatchdogMs / 1000

// Wait is how long runnable tasks have waited for one cause. Waits of less than 10 ms count as none.
type Wait struct {
	For             string  `json:"for"`
	UnderWaySeconds float64 `json:"under_way_s"` // the longest that has not ended, as of half a second ago
	Thread          int     `json:"thread"`      // whose that is; 0: nobody's, or it cannot be told
	LongestSeconds  float64 `json:"longest_s"`   // since the scheduler was attached
}

var waitCauses = [enforce.WaitCauses]string{
	enforce.WaitAnyCPU:   "any CPU",
	enforce.WaitOneCPU:   "one CPU",
	enforce.WaitLimit:    "its limit",
	enforce.WaitRealTime: "a real-time task",
}

func (s *Status) addWaits(m *enforce.Snapshot) {
	for cause, name := range waitCauses {
		underWay := m.Waits.UnderWayNs[cause]
		if !s.Enforced {
			underWay = 0 // the map tells of the scheduler's last moments
		}
		w := Wait{
			For: name, UnderWaySeconds: inMilliseconds(underWay), Thread: int(m.Waits.TID[cause]),
			LongestSeconds: inMilliseconds(max(m.Stats.LongestWaitNs[cause], underWay)),
		}
		s.Waits = append(s.Waits, w)
		if w.UnderWaySeconds > watchdogSeconds/3. {
			s.problem("%s has waited for %s for %.1f s; after %d s the kernel throws the scheduler out", w.who(), w.For, w.UnderWaySeconds, watchdogSeconds)
		}
	}
}

func inMilliseconds(ns uint64) float64 { return float64(ns/1e6) / 1e3 }

func (w Wait) who() string {
	if w.Thread == 0 {
		return "a thread"
	}
	return fmt.Sprintf("thread %d", w.Thread)
}

func (s *Status) writeWaits(w io.Writer) {
	fmt.Fprintf(w, "WAITS FOR\tNOW\tTHREAD\tLONGEST\tOF THE WATCHDOG'S %d S\n", watchdogSeconds)
	for _, c := range s.Waits {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f %%\n", c.For, orNone(c.UnderWaySeconds), threadOrNone(c.Thread), orNone(c.LongestSeconds), 100*c.LongestSeconds/watchdogSeconds)
	}
}

func orNone(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return host.Micros(uint64(seconds * 1e6))
}

func threadOrNone(id int) string {
	if id == 0 {
		return "-"
	}
	return fmt.Sprint(id)
}
