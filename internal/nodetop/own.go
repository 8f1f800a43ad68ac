package nodetop

import (
	"cmp"
	"time"

	"temper.dev/temper/internal/agent"
	"temper.dev/temper/internal/cgroup"
	"temper.dev/temper/internal/host"
	"temper.dev/temper/internal/status"
)

// Own looks at the node at root, which has this name, without anybody's help: pods are all cgroups that have a tier.
func Own(root host.Root, name string) *Round {
	r := &Round{Time: time.Now(), Nodes: []Look{}}
	seen, err := status.Now(root)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	families, err := metricsOf(seen)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	l := Look{Node: name, Time: r.Time, Live: true, Rung: string(seen.Rung), Enforced: "no", Problems: seen.Problems}
	if seen.Enforced {
		l.Enforced = "yes"
	} else if seen.Reason != "" {
		l.Problems = append([]string{seen.Reason}, l.Problems...)
	}
	l.fill(families, cgroupsOf(root, seen.Cgroups))
	r.Nodes = append(r.Nodes, l)
	return r
}

// metricsOf are a status's figures, by name.
func metricsOf(s *status.Status) (metrics, error) {
	list, err := status.RegistryOf(func() (*status.Status, error) { return s, nil }).Gather()
	m := metrics{}
	for _, family := range list {
		m[family.GetName()] = family
	}
	return m, err
}

// cgroupsOf are the members that are there.
func cgroupsOf(root host.Root, members []agent.Member) []Pod {
	pods := []Pod{}
	for _, m := range members {
		if m.Present {
			pods = append(pods, Pod{Name: cmp.Or(m.Pod, m.Cgroup), Tier: m.Tier.String(),
				CPU: microsecondsOf(cgroup.Used(root, m.Cgroup)), Waiting: microsecondsOf(cgroup.Waited(root, m.Cgroup))})
		}
	}
	return pods
}

func microsecondsOf(us *uint64) *Count {
	if us == nil {
		return nil
	}
	return &Count{Total: float64(*us) / 1e6}
}
