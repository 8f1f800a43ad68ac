package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"temper.dev/temper/internal/host"
)

// Limit is a finite cpu.max.
type Limit struct {
	Cgroup string `json:"cgroup"`
	Max    string `json:"cpu.max"` // "QUOTA PERIOD" in microseconds
}

// Limits lists the finite cpu.max of the tree. Cgroups that vanish meanwhile are left out.
func Limits(root host.Root) ([]Limit, error) {
	var limits []Limit
	err := Walk(root, func(cg string) {
		text, err := host.Read(root.Cgroup(cg + "/cpu.max"))
		if err == nil && !strings.HasPrefix(text, "max") {
			limits = append(limits, Limit{cg, text})
		}
	})
	return limits, err
}

// Walk calls visit for each cgroup, parents first, in the order of names.
func Walk(root host.Root, visit func(cg string)) error {
	top := root.Cgroup("/")
	return filepath.WalkDir(top, func(dir string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && dir != top {
			return nil
		}
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		visit("/" + strings.TrimPrefix(strings.TrimPrefix(dir, top), string(os.PathSeparator)))
		return nil
	})
}

// Find lists the cgroups whose last element is name.
func Find(root host.Root, name string) ([]string, error) {
	var found []string
	err := Walk(root, func(cg string) {
		if filepath.Base(cg) == name {
			found = append(found, cg)
		}
	})
	return found, err
}
