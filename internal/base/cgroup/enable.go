package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// Kinds of cgroups, as cgroup.type names them. The root of the tree has no such file.
const (
	domain  = "domain"
	invalid = "domain invalid"
)

// EnableCPU turns the cpu controller on for cg, from the root down, where it is off.
// It returns the cgroups in whose subtree_control it wrote. Without the controller the kernel schedules
// (and BPF sees) the nearest ancestor that has it, and cg's tier would not apply.
//
// The cpu controller is a threaded one: the kernel accepts it for a cgroup that has processes, and makes
// that a threaded domain. Its children are then "domain invalid", and no process can enter them. EnableCPU
// refuses to do that, and takes its write back where a process came in between.
func EnableCPU(root host.Root, cg string) (enabled []string, err error) {
	if host.Exists(root.Cgroup(path.Join(cg, "cpu.weight"))) { // it is on for cg, and so for all above
		return nil, nil
	}
	for _, parent := range Ancestors(cg) {
		file := subtreeControl(root, parent)
		on, err := host.Read(file)
		if err != nil {
			return enabled, err
		}
		// Another process may be about to enable it: the controller's name shows before its files
		// do. A write waits until that is done.
		if has(on, "cpu") && host.Exists(root.Cgroup(path.Join(parent, below(parent, cg), "cpu.weight"))) {
			continue
		}
		before := kind(root, parent)
		if before == domain && populated(root, parent) {
			return enabled, wouldBeThreaded(parent, cg)
		}
		if err := os.WriteFile(file, []byte("+cpu"), 0); err != nil {
			return enabled, exit.New(exit.NoCgroup, cure(before, parent, err),
				"cannot enable the cpu controller for %s: %s: %w", cg, file, errors.Unwrap(err))
		}
		if before == domain && kind(root, parent) != domain {
			return enabled, errors.Join(wouldBeThreaded(parent, cg), os.WriteFile(file, []byte("-cpu"), 0))
		}
		enabled = append(enabled, parent)
	}
	return enabled, nil
}

func wouldBeThreaded(parent, cg string) error {
	return exit.New(exit.NoCgroup, "move them into a child of "+parent+", or list "+parent+" instead",
		"cannot enable the cpu controller for %s: %s has processes of its own, and the controller would make it a threaded domain, whose children take no processes", cg, parent)
}

// cure is what helps where the kernel refuses the controller in a parent of this kind.
func cure(kind, parent string, err error) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return "mount the cgroup tree read-write where the agent runs"
	case errors.Is(err, fs.ErrPermission):
		return "run the agent as root of the host"
	case kind == invalid:
		return "make " + parent + " threaded (cgroup.type), or move the processes out of its threaded domain"
	}
	return "let whoever manages " + parent + " enable the cpu controller (systemd: Delegate=cpu, CPUWeight=)"
}

// kind is what cgroup.type says; "" for the root of the tree.
func kind(root host.Root, cg string) string {
	text, err := host.Read(root.Cgroup(path.Join(cg, "cgroup.type")))
	if err != nil {
		return ""
	}
	return text
}

// populated tells whether processes are in cg itself. One that cannot be asked counts as populated.
func populated(root host.Root, cg string) bool {
	procs, err := host.Read(root.Cgroup(path.Join(cg, "cgroup.procs")))
	return err != nil || procs != ""
}

func subtreeControl(root host.Root, cg string) string {
	return root.Cgroup(path.Join(cg, "cgroup.subtree_control"))
}

// below is the name of parent's child on the way to cg.
func below(parent, cg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(cg, parent), "/"), "/")
	return name
}
