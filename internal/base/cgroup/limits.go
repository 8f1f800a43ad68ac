package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"temper.dev/temper/internal/base/host"
)

// Limit is a finite cpu.max.
type Limit struct {
	Cgroup string `json:"cgroup"`
	Max    string `json:"cpu.max"` // "QUOTA PERIOD" in microseconds
}

// Limits lists the finite cpu.max of the tree. Cgroups that vanish meanwhile are left out.
func Limits(root host.Root) ([]Limit, error) {
	var limits []Limit
	err := Walk(root, func(cg string) error {
		text, err := host.Read(root.Cgroup(cg + "/cpu.max"))
		if err == nil && !strings.HasPrefix(text, "max") {
			limits = append(limits, Limit{cg, text})
		}
		return nil
	})
	return limits, err
}

// Walk calls visit for each cgroup, parents first, in the order of names; fs.SkipDir leaves out what is below. So is what lies
// deeper than a path can name: any user with a cgroup can make that.
func Walk(root host.Root, visit func(cg string) error) error {
	top := root.Cgroup("/")
	return filepath.WalkDir(top, func(dir string, entry fs.DirEntry, err error) error {
		if dir != top && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG)) {
			return nil
		}
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		return visit("/" + strings.TrimPrefix(strings.TrimPrefix(dir, top), string(os.PathSeparator)))
	})
}

// Find lists the cgroups whose last element is name. In a subtree that belongs to another user than this process's anybody may
// give any name: it is not looked into.
func Find(root host.Root, name string) ([]string, error) {
	var found []string
	err := Walk(root, func(cg string) error {
		if !Owned(root, cg) {
			return fs.SkipDir
		}
		if filepath.Base(cg) == name {
			found = append(found, cg)
		}
		return nil
	})
	return found, err
}

// Owned tells whether a cgroup belongs to the user that this process runs as: root.
func Owned(root host.Root, cg string) bool {
	info, err := os.Stat(root.Cgroup(cg))
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// Populated tells whether there are processes in cg or below it. One that cannot be asked counts as populated.
func Populated(root host.Root, cg string) bool {
	events, err := host.Read(root.Cgroup(filepath.Join(cg, "cgroup.events")))
	return err != nil || strings.Contains(events, "populated 1")
}
