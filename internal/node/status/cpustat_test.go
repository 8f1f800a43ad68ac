package status

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/fixture"
)

func TestCPUStatAddsWhatTemperCounted(t *testing.T) {
	const kernel = "usage_usec 900\nnr_periods 5\nnr_throttled 2\nthrottled_usec 70\nnr_bursts 1\n"
	root := fixture.Node(t, fixture.Files{"/sys/fs/cgroup/a/cpu.stat": kernel, "/sys/fs/cgroup/free/cpu.stat": kernel})
	s := &Status{Limits: []Limit{{Cgroup: "/a", Periods: 10, ThrottledPeriods: 3, ThrottledSeconds: 0.25}}}
	for cg, want := range map[string]string{
		"/a":                "usage_usec 900\nnr_periods 15\nnr_throttled 5\nthrottled_usec 250070\nnr_bursts 1\n",
		"/free":             kernel,
		"/sys/fs/cgroup/a/": "usage_usec 900\nnr_periods 15\nnr_throttled 5\nthrottled_usec 250070\nnr_bursts 1\n",
	} {
		if got, err := s.CPUStat(root, cg); err != nil || string(got) != want {
			t.Errorf("%s: %v, %q", cg, err, got)
		}
	}
	if _, err := s.CPUStat(root, "/nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a cgroup that is not there: %v", err)
	}
	fixture.Write(t, root, "/sys/fs/cgroup/a/cpu.stat", "usage_usec much\n")
	if _, err := s.CPUStat(root, "/a"); err == nil || !strings.Contains(err.Error(), "much") {
		t.Errorf("of a file that says no number: %v", err)
	}
}
