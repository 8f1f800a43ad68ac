//go:build guest

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"temper.dev/temper/internal/base/tier"
)

// crowdDies is for 2,000 processes, of which each takes milliseconds of the kernel's time, beside full critical load.
const crowdDies = 10 * time.Second

// Two thousand cgroups, each with a background task that never sleeps, come all at once, have turns while critical work never
// leaves a CPU, and go when they are told to.
func TestTimedCrowdHasTurnsAndDies(t *testing.T) {
	attachTiers(t)
	const n, parent = 2000, "/background/crowd"
	before := kernel(t)
	since := time.Now()
	took := func(what string) (d time.Duration) {
		d, since = time.Since(since), time.Now()
		t.Logf("%s: %v", what, d.Round(time.Millisecond))
		return d
	}
	crowd, release := gather(t, parent, n)
	took("they come")
	spin(t, "/critical", 2*runtime.NumCPU())
	had := make([]time.Duration, n)
	for i, s := range crowd {
		had[i] = s.cpuTime(t)
	}
	took("critical work comes")
	release()
	waiting := firstCPUs(n)
	eventually(t, "all have turns", func() bool {
		waiting = slices.DeleteFunc(waiting, func(i int) bool { return crowd[i].cpuTime(t) > had[i] })
		return len(waiting) == 0
	})
	took("all have turns")
	longest := time.Duration(snapshot(t).Stats.Tier[tier.Background].MaxWaitNs)
	t.Logf("the longest wait for a turn: %v", longest.Round(time.Millisecond))
	if longest > backgroundBound {
		t.Errorf("longer than %v", backgroundBound)
	}
	write(t, root.Cgroup(parent+"/cgroup.kill"), "1")
	for _, s := range crowd {
		if _, err := syscall.Wait4(s.pid, nil, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if took("all are dead") > crowdDies {
		t.Errorf("they took longer than %v to die", crowdDies)
	}
	for i := range crowd {
		removeCgroup(t, fmt.Sprintf("%s/%d", parent, i))
	}
	took("their cgroups are gone")
	if after := kernel(t); after != before {
		t.Errorf("the kernel said %+v before, %+v after", before, after)
	}
}

// gather starts n processes below a cgroup, each in a cgroup of its own, that all compute without an end as soon as they
// are released.
func gather(t *testing.T, parent string, n int) (crowd []*spinner, release func()) {
	t.Helper()
	makeCgroup(t, parent)
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	gate, opener, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	for i := range n {
		cg := fmt.Sprintf("%s/%d", parent, i)
		makeCgroup(t, cg)
		dir, err := os.Open(root.Cgroup(cg))
		if err != nil {
			t.Fatal(err)
		}
		// To move a task would take the kernel long, and os/exec keeps a file open for each process.
		pid, err := syscall.ForkExec(shell, []string{"sh", "-c", "read line; while :; do :; done"}, &syscall.ProcAttr{
			Env:   os.Environ(),
			Files: []uintptr{gate.Fd(), os.Stderr.Fd(), os.Stderr.Fd()},
			Sys:   &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())},
		})
		dir.Close()
		if err != nil {
			t.Fatal(err)
		}
		crowd = append(crowd, &spinner{pid: pid})
	}
	t.Cleanup(func() { write(t, root.Cgroup(parent+"/cgroup.kill"), "1") })
	return crowd, func() { opener.Close() }
}
