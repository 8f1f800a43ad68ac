package doctor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

func (n Node) cgroup() Check {
	const name = "cgroup v2"
	if err := cgroup.Check(n.Root); err != nil {
		return fromError(name, err)
	}
	on, err := host.Read(n.Root.Cgroup("/cgroup.subtree_control"))
	if err != nil {
		return fail(exit.NoCgroup, name, err.Error(), "")
	}
	for controller := range strings.FieldsSeq(on) {
		if controller == "cpu" {
			return ok(name, "mounted, cpu controller on")
		}
	}
	return ok(name, "mounted, cpu controller available (the agent enables it where a tier needs it)")
}

func (n Node) otherScheduler() Check {
	const name = "schedulers"
	s, err := n.Root.Scheduler()
	switch {
	case err != nil:
		return warn(name, err.Error(), "")
	case s.Enabled() && !s.IsTemper():
		return fail(exit.OtherScheduler, name, "another sched_ext scheduler is attached: "+s.Ops,
			"stop it (systemctl stop scx, or end its process)")
	case s.IsTemper():
		return ok(name, "temper is attached")
	}
	return ok(name, "no other sched_ext scheduler is attached")
}

func (n Node) limits() Check {
	const name, shown = "limits", 3
	limits, err := cgroup.Limits(n.Root)
	if err != nil {
		return warn(name, "cgroups cannot be searched for cpu.max: "+err.Error(), "mount cgroup2 on /sys/fs/cgroup")
	}
	if len(limits) == 0 {
		return ok(name, "no finite cpu.max")
	}
	if source := n.limitsSource(); source != "" {
		return ok(name, fmt.Sprintf("%d with a finite cpu.max, which is kept: %s", len(limits), source))
	}
	var some []string
	for _, l := range limits[:min(shown, len(limits))] {
		some = append(some, fmt.Sprintf("%s (%s)", l.Cgroup, l.Max))
	}
	if len(limits) > shown {
		some = append(some, fmt.Sprintf("and %d more", len(limits)-shown))
	}
	return fail(exit.LimitsPresent, name, fmt.Sprintf("%d with a finite cpu.max, which no scheduler can know on this kernel: %s", len(limits), strings.Join(some, ", ")),
		"boot 6.17 or later, write max to those cpu.max (systemd: CPUQuota=), or say limits: ignore")
}

// bpffs tries what modes do not tell; without privileges there is nothing to try.
func (n Node) bpffs(try bool) Check {
	const name = "bpffs"
	const at = "/sys/fs/bpf"
	switch there, err := n.mounted("bpf", at); {
	case err != nil:
		return warn(name, err.Error(), "")
	case !there:
		return fail(exit.LoadFailed, name, "no bpf file system on "+at+", so nothing can be pinned", "mount -t bpf bpf "+at)
	case !try:
		return ok(name, "mounted on "+at)
	}
	if err := n.TryPins(); err != nil {
		return fromError(name, err)
	}
	return ok(name, "mounted on "+at+", and a map can be pinned there")
}

// mounted tells whether a file system of this kind is mounted at a folder.
func (n Node) mounted(kind, at string) (bool, error) {
	mounts, err := host.Read(n.Root.Path("/proc/mounts"))
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == at && f[2] == kind {
			return true, nil
		}
	}
	return false, nil
}

// Bits of CapEff: what the chart gives the agent.
var capabilities = []struct {
	name string
	bit  int
}{{"CAP_SYS_NICE", 23}, {"CAP_PERFMON", 38}, {"CAP_BPF", 39}}

func (n Node) privileges() Check {
	const name = "privileges"
	const cure = "run as root"
	if n.EUID != 0 {
		return fail(exit.NotRoot, name, fmt.Sprintf("user id %d", n.EUID), cure)
	}
	text, err := host.Read(n.Root.Path("/proc/self/status"))
	if err != nil {
		return warn(name, err.Error(), "")
	}
	_, rest, _ := strings.Cut(text, "CapEff:")
	field, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	effective, err := strconv.ParseUint(strings.TrimSpace(field), 16, 64)
	if err != nil {
		return warn(name, "CapEff cannot be read from /proc/self/status", "")
	}
	var missing []string
	for _, c := range capabilities {
		if effective&(1<<c.bit) == 0 {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		return fail(exit.NotRoot, name, "root, but without "+strings.Join(missing, ", "), "add them to the service or container")
	}
	return ok(name, "root, with the capabilities that are needed")
}

func (n Node) loader() Check {
	const name = "scx_temper"
	path, err := n.FindLoader()
	if err != nil {
		return fromError(name, err)
	}
	return ok(name, path)
}

func (n Node) realTime() Check {
	const name = "real-time"
	tasks, err := n.RealTime()
	if err != nil {
		return warn(name, err.Error(), "")
	}
	var problems []string
	for _, task := range tasks {
		if text := task.Problem(); text != "" {
			problems = append(problems, text)
		}
	}
	if len(problems) > 0 {
		return warn(name, strings.Join(problems, "; "), "end it, give it pauses, or bind it to CPUs that nobody else needs")
	}
	return ok(name, "no real-time task is known to keep others from a CPU; the attached scheduler looks for them, where there is one")
}

func fromError(name string, err error) Check {
	c := fail(exit.StatusOf(err), name, err.Error(), "")
	if e, is := errors.AsType[*exit.Error](err); is {
		c.Found, c.Cure = e.Cause.Error(), e.Cure
	}
	return c
}
