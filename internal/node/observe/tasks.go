package observe

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/utils/cpuset"

	"temper.dev/temper/internal/base/host"
)

// RoleOf names the role of a cgroup's tasks; the cgroup is given by its path from the root.
type RoleOf func(cgroup string) Role

// Cgroups gives cgroups, and all below them, their roles.
func Cgroups(roles map[string]Role) RoleOf {
	return func(cgroup string) Role {
		for path := cgroup; ; path = filepath.Dir(path) {
			if role, ok := roles[path]; ok {
				return role
			}
			if path == filepath.Dir(path) {
				return Other
			}
		}
	}
}

// Tasks collects what /proc says of tasks, by process id: each thread has one.
type Tasks struct {
	Root   host.Root
	RoleOf RoleOf
	Found  map[int]Task
}

// Look adds the tasks that exist now. They come and go: look while those that matter are there.
func (t *Tasks) Look() error {
	dirs, err := filepath.Glob(t.Root.Path("/proc/[0-9]*/task/[0-9]*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		err := t.lookAt(dir)
		// A task that has gone meanwhile is missing, or has no process any more.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

func (t *Tasks) lookAt(dir string) error {
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return err
	}
	cgroups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return err
	}
	task := Task{Role: t.RoleOf(unified(string(cgroups)))}
	if task.Role != Other {
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			return err
		}
		task.Name = field(string(status), "Name:")
		if task.CPUs, err = cpuset.Parse(field(string(status), "Cpus_allowed_list:")); err != nil {
			return err
		}
	}
	t.Found[pid] = task
	return nil
}

// unified is the cgroup v2 path in /proc/PID/cgroup.
func unified(text string) string {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return strings.TrimSuffix(path, " (deleted)")
		}
	}
	return ""
}

func field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
