package ladder

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/plan"
)

// use is the CPU time that a cgroup has used, period by period.
type use []useSample

type useSample struct {
	at   time.Time
	used time.Duration
}

// mean is the use of a period, in quotas. quota is in seconds.
func (u use) mean(quota float64) float64 {
	if len(u) < 2 {
		return 0
	}
	return u.between(0, len(u)-1) / quota
}

// most is the most in any so many periods in a row, in quotas a period.
func (u use) most(quota float64, periods int) float64 {
	most := 0.0
	for i := periods; i < len(u); i++ {
		most = max(most, u.between(i-periods, i)/quota)
	}
	return most
}

// between is the use of a period, in seconds, from one sample to another. Samples are late at times: what counts is when
// they were taken.
func (u use) between(from, to int) float64 {
	elapsed := u[to].at.Sub(u[from].at)
	return float64(u[to].used-u[from].used) / float64(elapsed) * plan.LimitPeriod.Seconds()
}

// sampleUse reads what the critical cgroup has used at each period's end, for some seconds after others. The returned
// function waits for the last.
func (l *ladder) sampleUse(after, seconds float64) func() (use, error) {
	type outcome struct {
		use use
		err error
	}
	done := make(chan outcome, 1)
	begin := time.Now().Add(time.Duration(after * float64(time.Second)))
	periods := int(seconds * float64(time.Second) / float64(plan.LimitPeriod))
	go func() {
		// On the load generator's CPU, as all that watches. The thread ends with this function.
		runtime.LockOSThread()
		var self unix.CPUSet
		self.Set(l.CPUs)
		if err := unix.SchedSetaffinity(0, &self); err != nil {
			done <- outcome{err: err}
			return
		}
		var o outcome
		for i := 0; i <= periods && o.err == nil; i++ {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * plan.LimitPeriod)))
			var s useSample
			s, o.err = l.sample()
			o.use = append(o.use, s)
		}
		done <- o
	}()
	return func() (use, error) {
		o := <-done
		return o.use, o.err
	}
}

func (l *ladder) sample() (useSample, error) {
	used, err := l.used("critical")
	return useSample{time.Now(), used}, err
}

// used is the CPU time that a cgroup has used.
func (l *ladder) used(cgroup string) (time.Duration, error) {
	text, err := os.ReadFile(l.cgroup(cgroup + "/cpu.stat"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	usec, err := strconv.ParseInt(strings.TrimPrefix(first, "usage_usec "), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s/cpu.stat begins with %q", cgroup, first)
	}
	return time.Duration(usec) * time.Microsecond, nil
}
