package status

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// CPUStat is a cgroup's cpu.stat as it would be if the kernel, which counts no periods of a limit while a sched_ext scheduler
// is attached, had counted those that Temper kept: nr_periods, nr_throttled (periods in which a task had to wait) and
// throttled_usec (in which some task waited; the kernel adds up the CPUs' times) are the kernel's figures and Temper's.
func (s *Status) CPUStat(root host.Root, cgroup string) ([]byte, error) {
	cgroup = path.Join("/", strings.TrimPrefix(path.Clean(cgroup), "/sys/fs/cgroup"))
	kernel, err := os.ReadFile(root.Cgroup(cgroup + "/cpu.stat"))
	if err != nil {
		return nil, exit.New(exit.Usage, "name a cgroup as /system.slice/nginx.service, or as its folder below /sys/fs/cgroup", "%w", err)
	}
	var own Limit
	for _, l := range s.Limits {
		if l.Cgroup == cgroup {
			own = l
		}
	}
	add := map[string]uint64{"nr_periods": own.Periods, "nr_throttled": own.ThrottledPeriods, "throttled_usec": uint64(own.ThrottledSeconds * 1e6)}
	var out bytes.Buffer
	for line := range strings.Lines(string(kernel)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s/cpu.stat: line %q: %w", cgroup, line, err)
		}
		fmt.Fprintf(&out, "%s %d\n", name, n+add[name])
	}
	return out.Bytes(), nil
}
