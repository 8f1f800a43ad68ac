package ladder

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

func writeFile(path, text string) error {
	return os.WriteFile(path, []byte(text), 0)
}

// enterArm sets the machine up for an arm. It returns the preemption mode, and how to leave the arm.
func (l *ladder) enterArm(ctx context.Context, arm plan.Arm) (mode string, leave func() error, err error) {
	if mode, err = l.SetPreemption(arm.Preempt); err != nil {
		return "", nil, err
	}
	if err := l.setGroups(arm); err != nil {
		return "", nil, err
	}
	detach := func() error { return nil }
	switch {
	case arm.Scheduler == plan.Temper:
		detach, err = l.attachTemper(ctx, l.optionsOf(arm))
	case arm.Scheduler != "":
		detach, err = l.attachPeer(ctx, arm)
	}
	l.arm = arm
	return mode, func() error {
		l.arm = plan.Arm{}
		return errors.Join(detach(), l.setGroups(plan.Arm{}))
	}, err
}

// setGroups gives both cgroups what the arm asks for; the zero arm resets them.
func (l *ladder) setGroups(arm plan.Arm) error {
	// cpu.idle=1 hides the weight and refuses to have it written, so it is cleared first.
	for _, set := range []struct {
		file  string
		value int
	}{
		{"background/cpu.idle", 0},
		{"background/cpu.weight", 1},
		{"background/cpu.idle", bit(arm.Idle)},
		{"critical/cpu.weight", cmp.Or(arm.Weight, plan.DefaultWeight)},
	} {
		if err := writeFile(l.cgroup(set.file), strconv.Itoa(set.value)); err != nil {
			return err
		}
	}
	return nil
}

// underPolicy asks a program for a policy (the load folder's load.h).
func underPolicy(cmd *exec.Cmd, policy plan.Policy) {
	if policy != "" {
		cmd.Env = append(cmd.Env, "LADDER_POLICY="+string(policy))
	}
}

// optionsOf are those of scx_temper that say neither tiers nor how it speaks.
func (l *ladder) optionsOf(arm plan.Arm) []any {
	if arm.Reserved {
		return append(slices.Clone(l.options), "--reservation", l.CPUs)
	}
	return l.options
}

// attachTemper starts the loader and waits until it says that the scheduler is attached.
func (l *ladder) attachTemper(ctx context.Context, options []any) (leave func() error, err error) {
	cmd, err := l.command(ctx, "scx_temper", append([]any{"--json",
		"--tier", "critical=" + l.cgroup("critical"), "--tier", "background=" + l.cgroup("background")}, options...)...)
	if err != nil {
		return nil, err
	}
	// Killed, it would leave the scheduler attached until the kernel misses its heartbeat.
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.SysProcAttr.Pdeathsig = unix.SIGTERM
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	leave = func() error {
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			return err
		}
		return cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var event struct {
			Event, Message string
			Status         int
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("scx_temper said %q: %w", lines.Text(), err)
		}
		switch event.Event {
		case "attached":
			return leave, nil
		case "error", "exited":
			return nil, exit.New(max(event.Status, exit.Failed), "", "scx_temper: %s", event.Message)
		}
	}
	return nil, fmt.Errorf("scx_temper ended before it attached: %w", cmd.Wait())
}

// serviceThreads is what those are called that an arm is to put first.
func (l *ladder) serviceThreads() string {
	if l.service == nil {
		return "cost" // the program that RunCosts runs
	}
	return l.service.threads()
}

// mostAttach is how long another scheduler may take to attach, in guest time: the verifier looks at some for minutes.
const mostAttach = 10 * time.Minute

// attachPeer starts a scheduler that is not ours, and waits until the kernel says that it is attached.
func (l *ladder) attachPeer(ctx context.Context, arm plan.Arm) (leave func() error, err error) {
	cmd, err := l.command(ctx, arm.Command[0])
	if err != nil {
		return nil, err
	}
	for _, word := range arm.Command[1:] {
		if word == plan.ServiceThreads {
			word = l.serviceThreads()
		}
		cmd.Args = append(cmd.Args, word)
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(mostAttach); ; {
		// Its name is there before it is enabled, and counted, for every task.
		state, err := os.ReadFile(schedExt + "state")
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(string(state)) == "enabled" {
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s has not attached within %s", arm.Command[0], mostAttach)
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("%s ended before it attached: %w", arm.Command[0], err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func() error {
		if err := cmd.Process.Signal(unix.SIGINT); err != nil {
			return err
		}
		// Its status is its own affair: that it has left is what counts.
		<-ended
		now, err := readAttachment()
		if err == nil && now.ops != "" {
			err = fmt.Errorf("%s has ended, and the kernel still has the scheduler %s", arm.Command[0], now.ops)
		}
		return err
	}, nil
}
