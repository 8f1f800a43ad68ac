package stage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks is how many ticks a second /proc counts in (USER_HZ, the same on all architectures that Go runs on).
const ticks = 100

// CPU is what has been used up to a moment.
type CPU struct {
	At   time.Time
	Busy time.Duration // of all CPUs; what the hypervisor gave to others counts, too
	Own  time.Duration // of some processes
}

// ReadCPU looks into a proc file system; own are the processes that belong to the benchmark.
func ReadCPU(proc string, own []int) (c CPU, err error) {
	c.At = time.Now()
	text, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return c, err
	}
	if c.Busy, err = parseBusy(string(text)); err != nil {
		return c, err
	}
	for _, pid := range own {
		text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
		if err != nil {
			return c, err
		}
		used, err := parseUsed(string(text))
		if err != nil {
			return c, err
		}
		c.Own += used
	}
	return c, nil
}

// Foreign is how many CPUs, on average, others had between two moments.
func Foreign(from, to CPU) float64 {
	return ((to.Busy - from.Busy) - (to.Own - from.Own)).Seconds() / to.At.Sub(from.At).Seconds()
}

// parseBusy adds up /proc/stat's first line (proc(5)) without idle and iowait; guest time is in user time already.
func parseBusy(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	const user, nice, system, irq, softirq, steal = 1, 2, 3, 6, 7, 8
	return sum(fields, user, nice, system, irq, softirq, steal)
}

// parseUsed reads utime and stime of /proc/PID/stat. The name before them may hold anything, blanks and brackets too.
func parseUsed(stat string) (time.Duration, error) {
	const utime, stime = 11, 12 // counted from the field behind the name
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) <= stime {
		return 0, fmt.Errorf("/proc/PID/stat is %q", stat)
	}
	return sum(fields, utime, stime)
}

func sum(fields []string, which ...int) (time.Duration, error) {
	total := int64(0)
	for _, i := range which {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return time.Duration(total) * time.Second / ticks, nil
}
