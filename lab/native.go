package lab

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
	"temper.dev/temper/lab/ladder"
)

// nativeCgroup holds all that a native ladder starts, and nativeDir what they leave for each other.
const (
	nativeCgroup = "/temper-demo"
	nativeDir    = "/run/temper-demo"
)

// site prepares the host, and returns how to undo that.
func (n *Native) site() (ladder.Site, func() error, error) {
	none := ladder.Site{}
	mode, err := ladder.Preemption()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, nil, err
	}
	if err := n.makeCgroup(); err != nil {
		return none, nil, err
	}
	enabled, err := cgroup.EnableCPU(n.Root, nativeCgroup+"/any")
	leave := func() error {
		err := n.removeCgroup()
		if slices.Contains(enabled, "/") {
			err = errors.Join(err, os.WriteFile(n.Root.Cgroup("/cgroup.subtree_control"), []byte("-cpu"), 0))
		}
		if mode != "" {
			_, restore := ladder.SetPreemption(mode)
			err = errors.Join(err, restore)
		}
		return errors.Join(err, os.RemoveAll(nativeDir))
	}
	var log *os.File
	if err == nil {
		err = os.MkdirAll(nativeDir, 0o700)
	}
	if err == nil {
		log, err = os.OpenFile(filepath.Join(nativeDir, "log"), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return none, nil, errors.Join(err, leave())
	}
	return ladder.Site{
		Cgroups: n.Root.Cgroup(nativeCgroup), Dir: nativeDir, Find: n.find, Log: log,
		SetPreemption: func(wanted string) (string, error) { return setNativePreemption(mode, wanted) },
	}, leave, nil
}

// setNativePreemption takes "lazy", in which Debian's kernels boot, for the mode that this kernel
// was in. A kernel that has but one mode stays in it; the record names it.
func setNativePreemption(booted, wanted string) (string, error) {
	switch {
	case booted == "":
		return "as built", nil
	case wanted == "lazy":
		return ladder.SetPreemption(booted)
	}
	return ladder.SetPreemption(wanted)
}

// find looks for the ladder's programs where 'make build' leaves them, then in PATH.
func (n *Native) find(program string) (string, error) {
	for _, asset := range []string{"build/guest/" + program, "bin/" + program} {
		if path, err := n.Assets.file(asset); err == nil {
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
func (n *Native) makeCgroup() error {
	dir := n.Root.Cgroup(nativeCgroup)
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
	if err := n.removeCgroup(); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// removeCgroup ends all that runs in the cgroup, and removes it.
func (n *Native) removeCgroup() error {
	dir := n.Root.Cgroup(nativeCgroup)
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
