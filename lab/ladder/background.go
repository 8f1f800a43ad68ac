package ladder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/plan"
)

// worker is what a background worker runs.
type worker struct {
	program     string
	words       []string // beyond its slot and the CPUs
	environment []string
	command     bool // of a user: it starts others, and may end
}

// Workers of the lab's own.
var (
	spinner = worker{program: "spin"}
	resizer = worker{program: "resize"}
)

// startBackground starts n background workers on CPUs 0..cpus-1, and returns them once all of them work,
// with how to end them. A child starts where its parent is pinned, on the load generator's CPU: under
// strict tiers one that has not left it before the generator starts never does.
func (l *ladder) startBackground(ctx context.Context, what worker, n, cpus int) (workers []*exec.Cmd, stop func(), err error) {
	stop = func() {
		if what.command {
			l.killBackground()
		}
		for _, w := range workers {
			_ = w.Process.Kill()
			_ = w.Wait()
		}
	}
	for i := range n {
		w, err := l.startWorker(ctx, what, i, cpus)
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("background worker %d: %w", i, err)
		}
		workers = append(workers, w)
	}
	return workers, stop, nil
}

func (l *ladder) startWorker(ctx context.Context, what worker, i, cpus int) (*exec.Cmd, error) {
	args := []any{i, cpus}
	number := strings.NewReplacer(plan.WorkerWord, strconv.Itoa(i))
	for _, word := range what.words {
		args = append(args, number.Replace(word))
	}
	w, err := l.command(ctx, what.program, args...)
	if err != nil {
		return nil, err
	}
	if what.command {
		log, err := os.Create(l.logOf(workerName(i)))
		if err != nil {
			return nil, err
		}
		defer log.Close()
		w.Stderr, w.Dir = log, filepath.Join(plan.ServicesFolder, plan.BackgroundName)
		for _, setting := range what.environment {
			w.Env = append(w.Env, number.Replace(setting))
		}
	}
	underPolicy(w, l.arm.BackgroundPolicy)
	works, err := w.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.startIn("background", w); err != nil {
		return nil, err
	}
	if _, err := works.Read(make([]byte, 1)); err != nil {
		_ = w.Process.Kill()
		err = fmt.Errorf("it ended before it worked: %w", errors.Join(err, w.Wait()))
		if what.command {
			err = fmt.Errorf("%w%s", err, l.lastWords(workerName(i)))
		}
		return nil, err
	}
	return w, nil
}

// workerName is that of a worker's log.
func workerName(i int) string { return plan.BackgroundName + "-" + strconv.Itoa(i) }

// killBackground ends what workers have started. It waits until all are gone: they would take CPU time from the next window.
// cgroup.kill would be shorter. But Linux 6.18 then kills what clone3() starts in the cgroup later, too: it compares how often
// that cgroup was killed with how often the parent's was.
func (l *ladder) killBackground() {
	for {
		text, err := os.ReadFile(l.cgroup("background/cgroup.procs"))
		pids := strings.Fields(string(text))
		if err != nil || len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			if number, err := strconv.Atoi(pid); err == nil && number > 0 {
				_ = unix.Kill(number, unix.SIGKILL)
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// endedReason says why a window does not count if a worker has ended.
func (l *ladder) endedReason(workers []*exec.Cmd) (string, error) {
	for i, w := range workers {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, w.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
			return "", fmt.Errorf("state of worker %d: %w", i, err)
		}
		if info.Signo != 0 {
			return fmt.Sprintf("background worker %d has ended%s", i, l.lastWords(workerName(i))), nil
		}
	}
	return "", nil
}

// policyReason says why a window does not count if a worker was not under the arm's policy.
func policyReason(want plan.Policy, workers []*exec.Cmd) (string, error) {
	number := uint32(unix.SCHED_NORMAL)
	if want == plan.SchedIdle {
		number = unix.SCHED_IDLE
	}
	for i, w := range workers {
		attr, err := unix.SchedGetAttr(w.Process.Pid, 0)
		if err != nil {
			return "", fmt.Errorf("policy of worker %d: %w", i, err)
		}
		if attr.Policy != number {
			return fmt.Sprintf("background worker %d had scheduling policy %d, not %d", i, attr.Policy, number), nil
		}
	}
	return "", nil
}
