// Package cgroup is the node's cgroup v2 tree, as far as tiers need it. Cgroups are named
// by their path in the tree ("/", "/a/b"), never by a path in the host's file system.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// ID is the number by which BPF programs know a cgroup: the inode number of its directory.
// On 64-bit kernels since 5.5 the two are one number, which name_to_handle_at would say as well;
// but stat needs no privilege, and works on fixtures.
func ID(root host.Root, cg string) (uint64, error) {
	info, err := os.Stat(root.Cgroup(cg))
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return 0, &fs.PathError{Op: "cgroup id", Path: root.Cgroup(cg), Err: syscall.ENOTDIR}
	}
	return stat.Ino, nil
}

// Check refuses a node without cgroup v2 or without the cpu controller in it.
func Check(root host.Root) error {
	file := root.Cgroup("cgroup.controllers")
	controllers, err := host.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return exit.New(exit.NoCgroup, "boot with systemd.unified_cgroup_hierarchy=1, or mount cgroup2 on "+root.Cgroup("/"),
			"no cgroup v2: %s does not exist", file)
	}
	if err != nil {
		return exit.New(exit.NoCgroup, "", "%w", err)
	}
	if !has(controllers, "cpu") {
		return exit.New(exit.NoCgroup, "boot without cgroup_disable=cpu, and unmount the cgroup v1 hierarchy that holds it",
			"cgroup v2 has no cpu controller: %s says %q", file, controllers)
	}
	return nil
}

// Ancestors lists the cgroups above cg, from the root down.
func Ancestors(cg string) []string {
	var list []string
	for i, c := range cg {
		if c != '/' || i == len(cg)-1 && i > 0 {
			continue
		}
		if i == 0 {
			list = append(list, "/")
			continue
		}
		list = append(list, cg[:i])
	}
	return list
}

// ValidPath refuses what does not name one cgroup below the root.
func ValidPath(cg string) error {
	switch {
	case !strings.HasPrefix(cg, "/"):
		return fmt.Errorf("cgroup %q is relative: write it from the root of the cgroup tree, as in /proc/PID/cgroup", cg)
	case strings.HasPrefix(cg, "/sys/fs/cgroup"):
		return fmt.Errorf("cgroup %q: leave /sys/fs/cgroup out", cg)
	case strings.Contains(cg+"/", "/../"):
		return fmt.Errorf("cgroup %q: .. is not allowed", cg)
	case path.Clean(cg) == "/":
		return fmt.Errorf("cgroup %q: the root cannot have a tier", cg)
	case path.Clean(cg) != cg:
		return fmt.Errorf("cgroup %q: write %s", cg, path.Clean(cg))
	case strings.ContainsAny(cg, "\n\x00"):
		return fmt.Errorf("cgroup %q: no such character is allowed", cg)
	}
	return nil
}

func has(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}
