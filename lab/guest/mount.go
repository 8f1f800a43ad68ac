package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/ladder"
	"temper.dev/temper/lab/plan"
)

// labDir is where the ladder's programs leave files for each other.
const labDir = "/run/lab"

var mounts = []struct{ fs, at, options string }{
	{"proc", "/proc", ""},
	{"sysfs", "/sys", ""},
	{"devtmpfs", "/dev", ""},
	{"tmpfs", "/run", ""},
	{"tmpfs", "/tmp", ""},
	{"cgroup2", "/sys/fs/cgroup", ""},
	{"bpf", "/sys/fs/bpf", ""},
	{"debugfs", "/sys/kernel/debug", ""},
	{"tracefs", "/sys/kernel/tracing", ""},
}

func mountAll() error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if m.fs == "tmpfs" && holdsFiles(m.at) {
			continue // the root is one itself
		}
		if err := unix.Mount(m.fs, m.at, m.fs, 0, m.options); err != nil {
			return fmt.Errorf("mount %s at %s: %w", m.fs, m.at, err)
		}
	}
	if err := os.Setenv("PATH", plan.ProgramFolders); err != nil {
		return err
	}
	if err := os.MkdirAll(labDir, 0o755); err != nil {
		return err
	}
	if err := enableCPU(); err != nil {
		return err
	}
	return ladder.RaiseLoopback()
}

// holdsFiles tells whether the image has files there, which a mount would hide.
func holdsFiles(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// enableCPU turns the cpu controller on, unless the kernel was booted without it.
func enableCPU() error {
	controllers, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if err != nil || !slices.Contains(strings.Fields(string(controllers)), "cpu") {
		return err
	}
	return os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+cpu"), 0)
}
