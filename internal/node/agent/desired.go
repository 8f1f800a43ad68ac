package agent

import (
	"cmp"
	"slices"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
)

// Member is a cgroup that has a tier of its own.
type Member struct {
	Cgroup  string    `json:"cgroup"`
	Tier    tier.Tier `json:"tier"`
	Limits  string    `json:"limits,omitempty"` // mode of the pod's own; "": the node's
	Source  string    `json:"source"`           // "config", "flag", "run", the unit's name, "pod", "the kubelet" or "the container runtime"
	Pod     string    `json:"pod,omitempty"`    // namespace/name
	Reason  string    `json:"reason,omitempty"` // for a pod's tier
	Present bool      `json:"present"`
	ID      uint64    `json:"id,omitempty"` // a source that has just found the cgroup in the tree says it; the agent finds others
}

// resolveMembers finds out which members exist, in the order of their paths, and sees to it that those have the cpu controller, unless the node is to be left alone.
func (a *Agent) resolveMembers(wanted []Member) (members []Member, problems []string) {
	members = slices.SortedFunc(slices.Values(wanted), func(x, y Member) int { return cmp.Compare(x.Cgroup, y.Cgroup) })
	for i := range members {
		m := &members[i]
		if m.ID == 0 { // its source has not found it in the tree
			id, err := cgroup.ID(a.root, m.Cgroup)
			if err != nil {
				continue // not there: the watcher tells when it comes
			}
			m.ID = id
		}
		m.Present = true
		if a.cpuEnabled[m.Cgroup] == m.ID || a.wanted.Off != nil {
			continue
		}
		above, err := a.cpu.Enable(m.Cgroup)
		for _, cg := range above {
			a.log.Info("turned the cpu controller on for what is in it", "cgroup", cg)
		}
		if err == nil {
			a.cpuEnabled[m.Cgroup] = m.ID
		} else if host.Exists(a.root.Cgroup(m.Cgroup)) {
			problems = append(problems, err.Error())
		}
	}
	return members, problems
}

// assignments is the tier map's content for these members.
func assignments(members []Member) map[uint64]enforce.Assignment {
	m := map[uint64]enforce.Assignment{}
	for _, member := range members {
		if member.Present {
			m[member.ID] = enforce.Assign(member.Tier, member.Limits)
		}
	}
	return m
}

// backgroundCgroups lists the cgroups that the cpu.idle rung is about: those of the tier. A kubelet writes cpu.weight of its own
// cgroups when it starts and once a minute, which the kernel refuses while cpu.idle is 1, so that the kubelet ends. In their
// place stand the pods in them.
func backgroundCgroups(root host.Root, members []Member) (list []enforce.Cgroup) {
	own := map[string]tier.Tier{}
	for _, m := range members {
		own[m.Cgroup] = m.Tier
	}
	for _, m := range members {
		switch {
		case !m.Present || m.Tier != tier.Background:
		case cgroup.IsKubelets(m.Cgroup):
			list = append(list, podsIn(root, m.Cgroup, own)...)
		default:
			list = append(list, enforce.Cgroup{Path: m.Cgroup, ID: m.ID})
		}
	}
	return list
}

// podsIn lists what is in a kubelet's cgroup and has no tier of its own.
func podsIn(root host.Root, cg string, own map[string]tier.Tier) (list []enforce.Cgroup) {
	for _, c := range cgroup.Children(root, cg) {
		child := c.Path(cg)
		switch _, listed := own[child]; {
		case listed:
		case cgroup.IsKubelets(child):
			list = append(list, podsIn(root, child, own)...)
		default:
			list = append(list, enforce.Cgroup{Path: child, ID: c.ID})
		}
	}
	return list
}

// runCgroups lists the cgroups of temper run.
func runCgroups(members []Member) []string {
	var list []string
	for _, m := range members {
		if m.Source == sourceRun {
			list = append(list, m.Cgroup)
		}
	}
	return list
}
