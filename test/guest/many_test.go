//go:build guest

package guest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The deterministic machine of these tests has three CPUs; the first is for what is measured.

// Six hundred tasks that may not run on a CPU do not cost those that do: a pair that sleeps and wakes each other there
// makes as many round trips as beside two.
func TestTimedAffineCrowd(t *testing.T) {
	for _, c := range []struct {
		pair, crowd string
		least       float64 // of the round trips beside two
	}{
		{"/critical", "/background", 0.97},
		{"/background", "/standard", 0.9},
	} {
		t.Run(c.pair+" beside "+c.crowd, func(t *testing.T) {
			attachTiers(t)
			few := roundTrip(t, c.pair, c.crowd, 2)
			many := roundTrip(t, c.pair, c.crowd, 600)
			t.Logf("a round trip takes %v beside 2, %v beside 600: %.3f", few, many, float64(few)/float64(many))
			if float64(few) < c.least*float64(many) {
				t.Errorf("%.3f of the round trips, want %.2f", float64(few)/float64(many), c.least)
			}
		})
	}
}

func roundTrip(t *testing.T, pair, crowd string, n int) time.Duration {
	t.Helper()
	end := startCrowd(t, crowd, n, 1, 2)
	defer end()
	pair += "/critical" // by this name the program knows its own cgroup, whatever its tier
	controlledCgroup(t, pair)
	out := outputIn(t, pair, "cost", "pipe", "400", "3")
	ns, err := strconv.ParseFloat(string(bytes.TrimSpace(bytes.TrimPrefix(out, []byte("ns=")))), 64)
	if err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return time.Duration(ns)
}

// However many tasks wait below, a critical task runs as soon as beside two: nobody walks past all of them while it waits.
func TestTimedTenThousandWait(t *testing.T) {
	attachTiers(t)
	few, many := lateness(t, 2), lateness(t, 10000)
	t.Logf("p50, p99.9, max beside 2: %v; beside 10,000: %v", few, many)
	if float64(many[1]) > 1.1*float64(few[1]) || many[2] > 2*few[2] {
		t.Errorf("beside 10,000 %v, beside 2 %v: want p99.9 within 1.1, max within 2", many, few)
	}
}

// lateness is of a critical task on the first CPU, beside so many background threads on two: median, p99.9, longest; each the
// median of three windows. Two threads fill two CPUs as thousands do: beside an idle CPU, what is compared would be whether one
// has to be interrupted at all. The third is for those who wake up now and then, such as scx_temper.
func lateness(t *testing.T, n int) (is [3]time.Duration) {
	t.Helper()
	end := startCrowd(t, "/background", n, 0, 1)
	defer end()
	var windows [3][3]time.Duration
	for w := range windows {
		out := outputIn(t, "/critical", "lateness", "4000", "0")
		if _, err := fmt.Sscan(string(out), &windows[w][0], &windows[w][1], &windows[w][2]); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
	}
	for i := range is {
		of := []time.Duration{windows[0][i], windows[1][i], windows[2][i]}
		slices.Sort(of)
		is[i] = of[1]
	}
	return is
}

// startCrowd starts n threads that compute on some CPUs.
func startCrowd(t *testing.T, cg string, n, first, last int) (end func()) {
	t.Helper()
	s := &spinner{cmd: exec.Command("crowd", strconv.Itoa(n), strconv.Itoa(first), strconv.Itoa(last))}
	begin, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.start(t)
	if _, err := s.works.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the crowd ended before it was there: %v", err)
	}
	s.moveTo(t, cg)
	begin.Close()
	return s.end
}

// outputIn runs a program in a cgroup to its end.
func outputIn(t *testing.T, cg, program string, args ...string) []byte {
	t.Helper()
	dir, err := os.Open(root.Cgroup(cg))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	cmd.Env = append(os.Environ(), "LADDER_CGROUPS="+path.Dir(root.Cgroup(cg)))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(program, err)
	}
	return out
}
