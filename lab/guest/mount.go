package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
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
	if err := os.Setenv("PATH", "/bin:/usr/bin:/usr/sbin"); err != nil {
		return err
	}
	if err := os.MkdirAll(labDir, 0o755); err != nil {
		return err
	}
	if err := enableCPU(); err != nil {
		return err
	}
	return raiseLoopback()
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

func raiseLoopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("raise lo: %w", err)
	}
	return nil
}
