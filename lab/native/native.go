// Package native makes this host a place to run a ladder on instead of a virtual machine: a cgroup for all that the ladder
// starts, a folder, programs, and afterwards the host as it was.
//
// The ladder itself is in package ladder, as in a guest, and its record is made in package run.
package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/ladder"
)

// Host is the one that is measured.
type Host struct {
	Root   host.Root
	Assets assets.Folder
}

// demoCgroup holds all that a native ladder starts, and demoFolder what they leave for each other.
const (
	demoCgroup = "/temper-demo"
	demoFolder = "/run/temper-demo"
)

// Check refuses a host that cannot run a ladder, before anything is changed on it.
func (h Host) Check() error {
	scheduler, err := h.Root.Scheduler()
	switch {
	case err != nil:
		return err
	case scheduler.State == "":
		return exit.New(exit.NoSchedExt, "boot one with CONFIG_SCHED_CLASS_EXT=y, or measure in the lab",
			"the kernel of this host has no sched_ext")
	case os.Geteuid() != 0:
		return exit.New(exit.NotRoot, "use sudo", "a ladder on the host itself needs root")
	case scheduler.Enabled():
		return exit.New(exit.OtherScheduler, "stop it (Temper's own: 'systemctl stop temper')",
			"the scheduler %s is attached", scheduler.Ops)
	}
	return cgroup.Check(h.Root)
}

// Site prepares the host, and returns how to undo that.
func (h Host) Site() (ladder.Site, func() error, error) {
	none := ladder.Site{}
	mode, err := ladder.Preemption()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, nil, err
	}
	if err := h.makeCgroup(); err != nil {
		return none, nil, err
	}
	enabled, err := cgroup.EnableCPU(h.Root, demoCgroup+"/any")
	leave := func() error {
		err := h.removeCgroup()
		if slices.Contains(enabled, "/") {
			err = errors.Join(err, os.WriteFile(h.Root.Cgroup("/cgroup.subtree_control"), []byte("-cpu"), 0))
		}
		if mode != "" {
			_, restore := ladder.SetPreemption(mode)
			err = errors.Join(err, restore)
		}
		return errors.Join(err, os.RemoveAll(demoFolder))
	}
	var log *os.File
	if err == nil {
		err = os.MkdirAll(demoFolder, 0o700)
	}
	if err == nil {
		log, err = os.OpenFile(filepath.Join(demoFolder, "log"), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return none, nil, errors.Join(err, leave())
	}
	return ladder.Site{
		Cgroups: h.Root.Cgroup(demoCgroup), Dir: demoFolder, Find: h.find, Log: log,
		SetPreemption: func(wanted string) (string, error) { return setPreemption(mode, wanted) },
	}, leave, nil
}

// setPreemption takes "lazy", in which Debian's kernels boot, for the mode that this kernel
// was in. A kernel that has but one mode stays in it; the record names it.
func setPreemption(booted, wanted string) (string, error) {
	switch {
	case booted == "":
		return "as built", nil
	case wanted == "lazy":
		return ladder.SetPreemption(booted)
	}
	return ladder.SetPreemption(wanted)
}

// find looks for the ladder's programs where 'make build' leaves them, then in PATH.
func (h Host) find(program string) (string, error) {
	for _, asset := range []string{"build/guest/" + program, "bin/" + program} {
		if path, err := h.Assets.File(asset); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", exit.New(exit.Failed, "install it, or run 'make build' if it is Temper's own", "the ladder needs %s: %w", program, err)
	}
	return path, nil
}

// makeCgroup makes the cgroup, in place of one that a killed demo left.
func (h Host) makeCgroup() error {
	dir := h.Root.Cgroup(demoCgroup)
	if !host.Exists(dir) {
		return os.Mkdir(dir, 0o755)
	}
	left, err := os.ReadFile(dir + "/cgroup.events")
	if err != nil {
		return err
	}
	if populated(left) {
		return exit.New(exit.Failed, "wait for it, or end it with 'echo 1 > "+dir+"/cgroup.kill'", "another native demo runs in %s", dir)
	}
	if err := h.removeCgroup(); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// removeCgroup ends all that runs in the cgroup, and removes it.
func (h Host) removeCgroup() error {
	dir := h.Root.Cgroup(demoCgroup)
	if err := os.WriteFile(dir+"/cgroup.kill", []byte("1"), 0); err != nil {
		return err
	}
	// The dead leave their cgroup one by one, and only empty ones can be removed.
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		events, err := os.ReadFile(dir + "/cgroup.events")
		if err != nil {
			return err
		}
		if !populated(events) {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes in %s do not end", dir)
		}
	}
	return removeTree(dir)
}

func populated(events []byte) bool { return strings.Contains(string(events), "populated 1") }

// removeTree removes a cgroup and those below it. Their files go with them.
func removeTree(dir string) error {
	children, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, c := range children {
		if c.IsDir() {
			if err := removeTree(filepath.Join(dir, c.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}
