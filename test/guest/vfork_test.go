//go:build guest

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// vforkRole is a process that waits for a child, which computes without an end. The value is more flags for clone.
const vforkRole = "TEMPER_TEST_VFORK"

func beVforking() {
	more, err := strconv.Atoi(os.Getenv(vforkRole))
	if err != nil {
		panic(err)
	}
	os.Stdout.Write([]byte{1})
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		panic(err)
	}
	runtime.LockOSThread()
	child, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|unix.CLONE_VFORK|uintptr(more), 0, 0, 0, 0, 0)
	if errno != 0 {
		panic(errno)
	}
	for child == 0 {
	}
}

// TestChildrenOfVfork: a child for which its parent waits runs in the parent's tier. To have chosen a parent that does not wait gains nothing.
func TestChildrenOfVfork(t *testing.T) {
	for _, c := range []struct {
		name        string
		in          string // cgroup of who waits
		flags       int
		least, most float64 // of what the child and as many standard spinners as there are CPUs used
	}{
		{"a critical parent waits", "/critical", 0, 0.2, 1.0},
		{"a background parent waits", "/background", 0, 0, 0.02},
		{"the parent is of the system, and another waits", "/background", unix.CLONE_PARENT, 0, 0.02},
	} {
		t.Run(c.name, func(t *testing.T) {
			attachTiers(t)
			s := &spinner{cmd: exec.Command("/proc/self/exe")}
			s.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", vforkRole, c.flags))
			begin, err := s.cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			s.start(t)
			if _, err := s.works.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			s.moveTo(t, c.in)
			if _, err := begin.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
			child := 0
			eventually(t, "there is a child", func() bool {
				for _, text := range strings.Fields(read(t, root.Cgroup(c.in+"/cgroup.procs"))) {
					if pid, err := strconv.Atoi(text); err == nil && pid != s.pid {
						child = pid
					}
				}
				return child != 0
			})
			t.Cleanup(func() {
				_ = unix.Kill(child, unix.SIGKILL)
				if c.flags&unix.CLONE_PARENT != 0 {
					_, _ = unix.Wait4(child, nil, 0, nil)
				}
			})
			write(t, root.Cgroup("/background/cgroup.procs"), strconv.Itoa(child))
			got := used(t, 2*second(), []*spinner{{pid: child}}, spin(t, "/standard", runtime.NumCPU()))[0]
			if got < c.least || got > c.most {
				t.Errorf("%s: the child has %.4f of the node, want %.2f to %.2f", c.name, got, c.least, c.most)
			}
		})
	}
}
