//go:build guest

package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A new process or one that wakes has no turn that its cgroup is not due: neither lines of short-lived processes, be each in
// a cgroup of its own, nor rings of threads that wake each other have more of the node than their cgroup's weight says.
func whoTakesTurnsKeepsHisWeight(t *testing.T) {
	for _, c := range []struct {
		kind          string
		weight, other int
		least, most   float64 // of what both have
	}{
		// Nobody who waits is denied a turn a second. It lasts until a tick, for up to 4 ms, and some more for the task's end: that is
		// 0.006 of the node for three, and two such seconds may have three turns.
		{"processes", 1, 10000, 0, 0.01},
		{"cgroups", 1, 10000, 0, 0.01},
		{"threads", 1, 10000, 0, 0.01},
		{"processes", 10, 100, 0.07, 0.11},
		{"threads", 10, 100, 0.07, 0.11},
		{"processes", 100, 100, 0.44, 0.56},
		{"threads", 100, 100, 0.44, 0.56},
		{"processes", 1000, 100, 0.85, 0.94},
	} {
		t.Run(c.kind+" "+strconv.Itoa(c.weight)+" beside "+strconv.Itoa(c.other), func(t *testing.T) {
			const takesTurns, runsOn = "/standard/turns", "/standard/on"
			controlledCgroup(t, takesTurns)
			controlledCgroup(t, runsOn)
			write(t, root.Cgroup(takesTurns+"/cpu.weight"), strconv.Itoa(c.weight))
			write(t, root.Cgroup(runsOn+"/cpu.weight"), strconv.Itoa(c.other))
			spin(t, runsOn, runtime.NumCPU())
			s := &spinner{cmd: exec.Command("lineage", c.kind, strconv.Itoa(runtime.NumCPU()), root.Cgroup(takesTurns))}
			s.start(t)
			t.Cleanup(func() { emptyCgroup(t, takesTurns) })
			if _, err := s.works.Read(make([]byte, 1)); err != nil {
				t.Fatalf("it has not begun: %v", err)
			}
			usedTogether(t, second()/2, takesTurns, runsOn)
			share := usedTogether(t, 2*second(), takesTurns, runsOn)
			t.Logf("due %.4f, has %.4f", float64(c.weight)/float64(c.weight+c.other), share)
			if share < c.least || share > c.most {
				t.Errorf("it has %.4f, not %.4f to %.4f", share, c.least, c.most)
			}
		})
	}
}

// usedTogether lets two cgroups run until together they have had d of CPU time, and returns the share of the first.
func usedTogether(t *testing.T, d time.Duration, first, second string) float64 {
	t.Helper()
	before, beside := usage(t, first), usage(t, second)
	var had, total time.Duration
	eventually(t, first+" and "+second+" have run", func() bool {
		had = usage(t, first) - before
		total = had + usage(t, second) - beside
		return total >= d
	})
	return float64(had) / float64(total)
}

// emptyCgroup ends all that runs in a cgroup, and removes those within.
func emptyCgroup(t *testing.T, cg string) {
	t.Helper()
	write(t, root.Cgroup(cg+"/cgroup.kill"), "1")
	eventually(t, cg+" is empty", func() bool {
		return strings.Contains(read(t, root.Cgroup(cg+"/cgroup.events")), "populated 0")
	})
	within, err := filepath.Glob(root.Cgroup(cg + "/*/cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, procs := range within {
		if err := os.Remove(filepath.Dir(procs)); err != nil {
			t.Error(err)
		}
	}
}
