package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/enforce"
)

// EnterSafeMode keeps the node at the kernel's own scheduler until LeaveSafeMode, for the reason given. It returns
// once the kernel has it: the agent's doing, or its own where no agent runs.
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
	if !Locked(root) {
		if err := detach(root, ""); err != nil {
			return err
		}
	}
	return untilGone(ctx, root)
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

// untilGone looks until scx_temper's scheduler has left: the kernel tells nobody.
func untilGone(ctx context.Context, root host.Root) error {
	const every, within = 20 * time.Millisecond, 2 * stopWithin
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	for {
		s, err := root.Scheduler()
		if err != nil {
			return err
		}
		// While it leaves, the state is "disabling". An agent that has not noticed yet may be about to attach it.
		if s.Ops != enforce.OpsName && (!Locked(root) || isOff(root)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return exit.New(exit.Failed, "see 'temper status', and the agent's log", "the scheduler is still attached after %v", within)
		case <-time.After(every):
		}
	}
}

func isOff(root host.Root) bool {
	state, err := ReadState(root)
	return err == nil && state.Off != nil
}
