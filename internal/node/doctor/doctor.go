// Package doctor finds out whether a node can be enforced, and if not, why and what to do.
package doctor

import (
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/status"
)

// Level is how a check came out.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // Temper works, though not at its best
	Fail Level = "fail" // the scheduler cannot be attached
)

// Check is one finding.
type Check struct {
	Name   string `json:"name"`
	Level  Level  `json:"level"`
	Found  string `json:"found"`          // what there is; for warn and fail the cause
	Cure   string `json:"cure,omitempty"` // for warn and fail
	Status int    `json:"status"`         // the exit status that a failure asks for, else 0
}

// Node is what is examined.
type Node struct {
	Root    host.Root
	Release string // uname -r
	EUID    int
	// FindLoader is scx_temper's path.
	FindLoader func() (string, error)
	// TryPins pins a map as scx_temper does, and undoes it.
	TryPins func() error
	// RealTime are the real-time tasks that have CPUs for themselves, as the attached scheduler sees them.
	RealTime func() ([]status.RealTime, error)
}

// Examine runs all checks: the kernel's first, since they are the hardest to cure.
func (n Node) Examine() []Check {
	checks := []Check{n.kernel()}
	schedExt := n.schedExt()
	checks = append(checks, schedExt)
	if schedExt.Level == OK { // without sched_ext its kfuncs are missing of course
		checks = append(checks, n.isolation(), n.btf(), n.park())
	}
	cgroup := n.cgroup()
	checks = append(checks, n.lockdown(), cgroup, n.otherScheduler())
	if cgroup.Level == OK { // cpu.max of cgroup v1 is another matter
		checks = append(checks, n.limits())
	}
	privileges := n.privileges()
	return append(checks, n.bpffs(privileges.Level == OK), privileges, n.loader(), n.preemption(), n.realTime())
}

// Verdict is the failure of the first check that failed; nil if none did.
func Verdict(checks []Check) error {
	for _, c := range checks {
		if c.Level == Fail {
			return exit.New(c.Status, c.Cure, "%s: %s", c.Name, c.Found)
		}
	}
	return nil
}

func ok(name, found string) Check { return Check{Name: name, Level: OK, Found: found} }

func warn(name, found, cure string) Check {
	return Check{Name: name, Level: Warn, Found: found, Cure: cure}
}

func fail(status int, name, found, cure string) Check {
	return Check{Name: name, Level: Fail, Found: found, Cure: cure, Status: status}
}
