package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/host"
)

// slots is how many workers can be told apart: MAX_SPINNERS of the load folder's load.h, of slotBytes each.
const (
	slots     = 256
	slotBytes = 64
	mostAlive = 48 // workers at a time
)

// kinds of worker (the load folder's churn.c).
var kinds = []string{"spin", "spin", "nap", "nap", "yield", "ping", "fork", "exec", "thread", "files", "mutex"}

// hogs never sleep by themselves.
var hogs = map[string]bool{"spin": true, "yield": true, "mutex": true, "files": true}

// worker is one process that makes trouble.
type worker struct {
	kind, cgroup string
	slot         int
	cmd          *exec.Cmd
	ended        chan struct{}

	held     bool      // stopped by a signal
	done     uint64    // as far as it had got on
	since    time.Time // when it was last seen to have got on, or had no reason to
	reported bool      // that it stalls
}

func (w *worker) pid() int { return w.cmd.Process.Pid }

func (w *worker) String() string { return fmt.Sprintf("%s[%d] of %s", w.kind, w.pid(), w.cgroup) }

func (w *worker) isOver() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// wants tells whether it goes on if it has a CPU, or a lock that another has: it never sleeps, and
// nobody has stopped it.
func (w *worker) wants() bool { return hogs[w.kind] && !w.held && !w.isOver() }

// isRunnable tells whether its first thread runs or waits for a CPU.
func (w *worker) isRunnable() bool {
	stat, err := host.Read(fmt.Sprintf("/proc/%d/stat", w.pid()))
	return err == nil && strings.Contains(stat, ") R ")
}

// work is the file in which workers count their rounds.
type work struct{ counts []byte }

func openWork(dir string) (work, error) {
	f, err := os.OpenFile(dir+"/work", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return work{}, err
	}
	defer f.Close()
	if err := f.Truncate(slots * slotBytes); err != nil {
		return work{}, err
	}
	counts, err := unix.Mmap(int(f.Fd()), 0, slots*slotBytes, unix.PROT_READ, unix.MAP_SHARED)
	return work{counts}, err
}

func (w work) rounds(slot int) uint64 {
	return nativeUint64(w.counts[slot*slotBytes:])
}

// startWorker starts one in a cgroup. It has left this process's cgroup before it runs at all.
func startWorker(kind, cgroup string, slot int) (*worker, error) {
	dir, err := os.Open(root.Cgroup(cgroup))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	cmd := exec.Command("churn", kind, fmt.Sprint(slot))
	cmd.Env = append(os.Environ(), "LADDER_DIR="+agentFiles)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Setpgid: true, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &worker{kind: kind, cgroup: cgroup, slot: slot, cmd: cmd, ended: make(chan struct{}), since: time.Now()}
	go func() { _ = cmd.Wait(); close(w.ended) }()
	return w, nil
}

// cpuTime is what a process's threads have had, in ns; those that have just ended do not count.
func cpuTime(pid int) (total uint64) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range files {
		var ns uint64
		if text, err := host.Read(file); err == nil {
			_, _ = fmt.Sscan(text, &ns)
		}
		total += ns
	}
	return total
}
