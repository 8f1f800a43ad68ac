//go:build guest

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/enforce"
)

// pretend is a line of shell that has a file of the kernel's say something else; it is for a mount namespace.
func pretend(t *testing.T, file, text string) string {
	t.Helper()
	return "mount --bind " + writeFile(t, text) + " " + file
}

const (
	isolated = "/sys/devices/system/cpu/isolated"
	possible = "/sys/devices/system/cpu/possible"
	sequence = "/sys/kernel/sched_ext/hotplug_seq"
)

func TestIsolatedCPUsAreNamed(t *testing.T) {
	inside := inNamespaces(t, "/", pretend(t, isolated, "1\n"))
	cmd := exec.Command("scx_temper")
	inside(cmd)
	refused(t, exit.IsolatedCPUs, "isolcpus=1", cmd)
	cmd = exec.Command("temper", "doctor")
	inside(cmd)
	if code, stdout, _ := finish(t, cmd); code != exit.IsolatedCPUs || !strings.Contains(stdout, "boot without isolcpus=") {
		t.Errorf("temper doctor: %d, %s", code, stdout)
	}
	a := startAgentInside(t, inside, batch)
	s := a.await(enforce.CPUIdle)
	if !strings.Contains(s.Reason, "isolcpus=1") || !strings.Contains(s.Reason, "boot without it") {
		t.Errorf("the reason is %q", s.Reason)
	}
	eventually(t, "the agent does not try again", func() bool { return strings.Contains(a.said(), "is not tried again") })
}

// A kernel with one CPU of the highest number: to count CPUs is not enough.
func TestNumbersOfCPUsWithHoles(t *testing.T) {
	last := runtime.NumCPU() - 1
	if last == 0 {
		t.Fatal("this takes two CPUs")
	}
	cmd := exec.Command("scx_temper")
	inNamespaces(t, "/", pretend(t, possible, "0-3,900\n"))(cmd)
	refused(t, exit.LoadFailed, "may have CPUs 0-3,900, and at most 512 are supported", cmd)

	l := startLoaderInside(t, inNamespaces(t, "/", pretend(t, possible, strconv.Itoa(last)+"\n")))
	if e := l.next(t); e.Event != enforce.EventAttached {
		t.Fatalf("%+v", e)
	}
	if s, err := enforce.ReadPinned(root.Pins()); err != nil || int(s.Info.NrCPUs) != last+1 {
		t.Fatalf("%v: %+v", err, s.Info)
	}
	sleeper := exec.Command("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	var only unix.CPUSet
	only.Set(last)
	if err := unix.SchedSetaffinity(sleeper.Process.Pid, &only); err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Wait(); err != nil {
		t.Error(err)
	}
	if s := kernel(t); !s.IsTemper() {
		t.Errorf("the kernel says %+v", s)
	}
}

// What scx_temper reads is answered by the test, which so makes a CPU come at the worst moments: the kernel sees it where
// it compares, and scx_temper where the kernel does not.
func TestCPUThatComesWhileAttaching(t *testing.T) {
	now, err := strconv.Atoi(read(t, sequence))
	if err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "sequence")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		answers := []int{now + 1, now, now + 1, now} // and the last for ever
		for i := 0; ; i++ {
			f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits for scx_temper
			if err != nil {
				return // the test has ended
			}
			fmt.Fprintln(f, answers[min(i, len(answers)-1)])
			awaitNoReader(f) // else it would be asked for the next answer, too
			f.Close()
		}
	}()
	l := startLoaderInside(t, inNamespaces(t, "/", "mount --bind "+fifo+" "+sequence))
	if e := l.next(t); e.Event != enforce.EventExited {
		t.Fatalf("refused by the kernel: %+v", e)
	}
	if e := l.next(t); e.Event != enforce.EventAttached {
		t.Fatalf("%+v", e)
	}
	if said := read(t, l.stderr); strings.Count(said, "CPUs have come or gone; attaching again") != 2 {
		t.Errorf("it said:\n%s", said)
	}
	if s := kernel(t); !s.IsTemper() {
		t.Errorf("the kernel says %+v", s)
	}
}

// On a hybrid host the cpu controller is one of cgroup v1.
func TestHybridHostIsRefused(t *testing.T) {
	old := t.TempDir()
	eventually(t, "cgroup v1 has the cpu controller", func() bool {
		var all []string
		if err := cgroup.Walk(root, func(cg string) error { all = append(all, cg); return nil }); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // children before their parents
		for _, cg := range append(all, "/") {
			_ = os.WriteFile(root.Cgroup(cg+"/cgroup.subtree_control"), []byte("-cpu"), 0)
		}
		return unix.Mount("none", old, "cgroup", 0, "cpu") == nil
	})
	t.Cleanup(func() {
		if err := unix.Unmount(old, 0); err != nil {
			t.Error(err)
		}
		eventually(t, "the controller is back", func() bool {
			return os.WriteFile(root.Cgroup("/cgroup.subtree_control"), []byte("+cpu"), 0) == nil
		})
	})
	const why = "cgroup v2 has no cpu controller"
	refused(t, exit.NoCgroup, why, exec.Command("scx_temper"))
	refused(t, exit.NoCgroup, why, exec.Command("scx_temper", "--no-pin"))
	if code, _, stderr := temperCommand(t, "doctor"); code != exit.NoCgroup || !strings.Contains(stderr, why) {
		t.Errorf("temper doctor: %d, %s", code, stderr)
	}
}

// awaitNoReader waits until nobody has the other end of a pipe open.
func awaitNoReader(f *os.File) {
	for {
		end := []unix.PollFd{{Fd: int32(f.Fd())}}
		if _, err := unix.Poll(end, -1); err == nil && end[0].Revents&unix.POLLERR != 0 {
			return
		}
	}
}
