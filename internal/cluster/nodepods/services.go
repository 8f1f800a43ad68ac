package nodepods

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/sockets"
	"temper.dev/temper/internal/node/agent"
)

// kubeletPort is where kubelets listen, unless they are told otherwise.
const kubeletPort = 10250

// service is what pods depend on, in a cgroup of its own: the kubelet, or the container runtime with its shims. Distributions
// keep them where they like, such as in /runtime.slice, where they would be standard, below critical pods.
type service struct {
	name   string
	why    string
	cgroup string
	id     uint64
}

// findServices finds them by what they do, since anybody may take a name: the kubelet is root's process that listens at its
// port, and the runtime is the one that listens at the socket where it told this agent of containers. What is in a pod's
// cgroup is neither. A socket stays of the cgroup that made it: a kubelet that moved since (kubeletCgroups) is a problem.
func (s *Source) findServices() {
	s.services = nil
	ids, err := sockets.Listeners(kubeletPort)
	if err != nil && !s.unasked {
		s.log.Warn("the kernel does not say who listens: a kubelet outside of system.slice is standard", "error", err)
	}
	s.unasked = err != nil
	for _, id := range ids {
		if cg, outside := s.tree.outside[id]; outside {
			s.services = append(s.services, service{"the kubelet", fmt.Sprintf("it listens at port %d", kubeletPort), cg, id})
		}
	}
	if s.runtime == nil {
		return
	}
	if cg := cgroupOf(s.root, s.runtime()); cg != "" {
		if id, err := cgroup.ID(s.root, cg); err == nil && s.tree.outside[id] == cg {
			s.services = append(s.services, service{"the container runtime", "it listens at its NRI socket", cg, id})
		}
	}
}

// cgroupOf is a process's cgroup; "" if it is not known. A path that begins with dots is relative to the cgroup that this
// process sees as the root, and what follows the dots leads from the cgroup that both are in: almost always the real root.
func cgroupOf(root host.Root, pid int) string {
	if pid == 0 {
		return ""
	}
	text, err := os.ReadFile(root.Path(fmt.Sprintf("/proc/%d/cgroup", pid)))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		cg, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !unified {
			continue
		}
		for strings.HasPrefix(cg, "/..") {
			cg = strings.TrimPrefix(cg, "/..")
		}
		if processes, err := host.Read(root.Cgroup(cg + "/cgroup.procs")); err == nil && slices.Contains(strings.Fields(processes), strconv.Itoa(pid)) {
			return cg
		}
	}
	return ""
}

// addServices has them be system where they are not by what the node's own configuration says.
func (s *Source) addServices(w *agent.Wanted) {
	for _, found := range s.services {
		switch {
		case !cgroup.Populated(s.root, found.cgroup):
			w.Problems = append(w.Problems, fmt.Sprintf("%s is not in %s any more, where it began to listen, and nobody knows where it is; list its cgroup in the node's configuration, as system",
				found.name, found.cgroup))
		case tierBy(w.Members, found.cgroup) == tier.System:
		case found.cgroup == "/", slices.ContainsFunc(s.tree.tops, func(top string) bool { return slices.Contains(cgroup.Ancestors(top), found.cgroup) }):
			w.Problems = append(w.Problems, fmt.Sprintf("%s runs in %s, which holds pods, too, and so is %s there, below critical pods; start it in a cgroup of its own",
				found.name, found.cgroup, tierBy(w.Members, found.cgroup)))
		default:
			w.Add(agent.Member{Cgroup: found.cgroup, ID: found.id, Tier: tier.System, Source: found.name, Reason: found.why})
		}
	}
}

// tierBy is the tier that a cgroup has by a member: itself, or the nearest above it; standard if there is none. It is asked at
// each look, beside a node's pods.
func tierBy(members []agent.Member, cg string) tier.Tier {
	nearest := agent.Member{Tier: tier.Standard}
	for _, m := range members {
		if below, is := strings.CutPrefix(cg, m.Cgroup); is && (below == "" || below[0] == '/') && len(m.Cgroup) > len(nearest.Cgroup) {
			nearest = m
		}
	}
	return nearest.Tier
}
