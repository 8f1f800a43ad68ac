// Package host knows where one node keeps its files. Everything hangs off a root,
// so that a container sees its host under a mount point, and a test a directory of fixtures.
package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Root is a node's file system, named by the directory it is mounted on; "/" is this machine.
type Root string

// Path puts an absolute path of the node below the root.
func (r Root) Path(path string) string { return filepath.Join(string(r), path) }

// Cgroup is the directory of a cgroup, which is named as in /proc/PID/cgroup: "/", "/a/b".
func (r Root) Cgroup(path string) string { return filepath.Join(string(r), "/sys/fs/cgroup", path) }

// SchedExt is a file below /sys/kernel/sched_ext.
func (r Root) SchedExt(name string) string {
	return r.Path(filepath.Join("/sys/kernel/sched_ext", name))
}

// Pins is where scx_temper pins its link and maps by default.
func (r Root) Pins() string { return r.Path("/sys/fs/bpf/temper") }

// Run is a file below /run/temper.
func (r Root) Run(name string) string { return r.Path(filepath.Join("/run/temper", name)) }

// Read is a small file's content without surrounding space.
func Read(path string) (string, error) {
	data, err := os.ReadFile(path)
	return strings.TrimSpace(string(data)), err
}

// Exists tells whether path exists; a path that may not be looked at counts as missing.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Scheduler is what /sys/kernel/sched_ext says. The zero value: no sched_ext in this kernel.
type Scheduler struct {
	State      string `json:"state"` // "enabled", "disabled", ...; "" without sched_ext
	Ops        string `json:"ops"`   // name of the attached scheduler; "" if none is
	EnableSeq  uint64 `json:"enable_seq"`
	NrRejected uint64 `json:"nr_rejected"`
}

// Scheduler reads the kernel's own word on which sched_ext scheduler is attached.
func (r Root) Scheduler() (Scheduler, error) {
	state, err := Read(r.SchedExt("state"))
	if errors.Is(err, fs.ErrNotExist) {
		return Scheduler{}, nil
	}
	if err != nil {
		return Scheduler{}, err
	}
	s := Scheduler{State: state}
	if s.EnableSeq, err = readUint(r.SchedExt("enable_seq")); err != nil {
		return s, err
	}
	if s.NrRejected, err = readUint(r.SchedExt("nr_rejected")); err != nil {
		return s, err
	}
	s.Ops, err = Read(r.SchedExt("root/ops"))
	// root exists only while a scheduler is attached; one that leaves between open and read makes it no device.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		err = nil
	}
	return s, err
}

func readUint(path string) (uint64, error) {
	text, err := Read(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// Enabled tells whether any sched_ext scheduler is attached.
func (s Scheduler) Enabled() bool { return s.State == "enabled" }

// IsTemper tells whether the attached scheduler is Temper's.
func (s Scheduler) IsTemper() bool { return s.Enabled() && s.Ops == "temper" }
