package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/enforce"
)

// EnterSafeMode keeps the node at the kernel's own scheduler until LeaveSafeMode, for the reason given. It returns
// once the kernel has it: the agent's doing, or its own where no agent runs, or none that answers.
func EnterSafeMode(ctx context.Context, root host.Root, reason string) error {
	if err := isNode(root); err != nil {
		return err
	}
	file := root.Path(SafeModeFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := writeReason(file, reason); err != nil {
		return err
	}
	if IsRunning(root) {
		if err := waitUntilDetached(ctx, root, agentHasActed); err == nil || ctx.Err() != nil {
			return err
		}
	}
	if err := detachWithoutAgent(root); err != nil {
		return err
	}
	return waitUntilDetached(ctx, root, isDetached)
}

// detachWithoutAgent ends scx_temper, which detaches the scheduler. One that was about to hand over may leave the scheduler
// attached for a successor; it is nobody's then.
func detachWithoutAgent(root host.Root) error {
	if maps, err := enforce.ReadPinned(root.Pins()); err == nil {
		if err := endLoader(int(maps.Info.LoaderPID)); err != nil {
			return err
		}
	}
	return detach(root, "")
}

// endLoader ends a scx_temper, and waits for that. Nobody else who has its number by now is to end.
func endLoader(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if name, err := host.Read(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || name != enforce.LoaderName {
		return nil // it has ended, or runs where its number is another one
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	for {
		ended, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int((2 * stopWithin).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case ended == 0:
			return fmt.Errorf("scx_temper, process %d, has not ended within %v", pid, 2*stopWithin)
		default:
			return nil
		}
	}
}

// writeReason keeps the reason of whoever was here before, where none is given.
func writeReason(file, reason string) error {
	if _, err := os.Stat(file); err == nil && reason == "" {
		return nil
	}
	next := file + ".new"
	if err := os.WriteFile(next, []byte(reason+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(next, file) // so that nobody reads half of it
}

// LeaveSafeMode lets the agent enforce tiers again; it does not wait for that, which may fail. It tells whether there was anything to leave.
func LeaveSafeMode(root host.Root) (bool, error) {
	if err := isNode(root); err != nil {
		return false, err
	}
	err := os.Remove(root.Path(SafeModeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// isNode refuses a root where no agent would look for the file.
func isNode(root host.Root) error {
	if etc := root.Path("/etc"); !host.Exists(etc) {
		return exit.New(exit.Failed, "name with --host-root where the node's file system is mounted", "there is no %s: nothing was changed", etc)
	}
	return nil
}

func isDetached(root host.Root) (bool, error) {
	s, err := root.Scheduler()
	return s.Ops != enforce.OpsName, err
}

// agentHasActed is more than that the scheduler is detached: while it leaves, the state is "disabling", and an agent that has not
// noticed yet may be about to attach it.
func agentHasActed(root host.Root) (bool, error) {
	detached, err := isDetached(root)
	return detached && (!IsRunning(root) || isOff(root)), err
}

// waitUntilDetached polls until the scheduler is detached: the kernel tells nobody.
func waitUntilDetached(ctx context.Context, root host.Root, detached func(host.Root) (bool, error)) error {
	const every, within = 20 * time.Millisecond, 2 * stopWithin
	timeout := time.After(within)
	for {
		if done, err := detached(root); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return exit.New(exit.Failed, "press SysRq-S, which makes the kernel detach any sched_ext scheduler", "the scheduler is still attached after %v", within)
		case <-time.After(every):
		}
	}
}

func isOff(root host.Root) bool {
	state, err := ReadState(root)
	return err == nil && state.Off != nil
}
