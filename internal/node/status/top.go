package status

import (
	"cmp"
	"time"

	dto "github.com/prometheus/client_model/go"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/nodetop"
)

// Top looks at the node at root, which has this name, without anybody's help: pods are all cgroups that have a tier.
func Top(root host.Root, name string) *nodetop.Round {
	r := &nodetop.Round{Time: time.Now(), Nodes: []nodetop.Look{}}
	seen, err := Now(root)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	families, err := metricsOf(seen)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	l := nodetop.Look{Node: name, Time: r.Time, Live: true, Rung: string(seen.Rung), Enforced: "no", Problems: seen.Problems}
	if seen.Enforced {
		l.Enforced = "yes"
	} else {
		l.Why = seen.Reason
	}
	l.Fill(families, cgroupsOf(root, seen.Cgroups))
	r.Nodes = append(r.Nodes, l)
	return r
}

// metricsOf are a status's figures, by name.
func metricsOf(s *Status) (map[string]*dto.MetricFamily, error) {
	list, err := RegistryOf(func() (*Status, error) { return s, nil }).Gather()
	m := map[string]*dto.MetricFamily{}
	for _, family := range list {
		m[family.GetName()] = family
	}
	return m, err
}

// cgroupsOf are the members that are there.
func cgroupsOf(root host.Root, members []agent.Member) []nodetop.Pod {
	pods := []nodetop.Pod{}
	for _, m := range members {
		if m.Present {
			pods = append(pods, nodetop.Pod{Name: cmp.Or(m.Pod, m.Cgroup), Tier: m.Tier.String(),
				CPU: microsecondsOf(cgroup.Used(root, m.Cgroup)), Waiting: microsecondsOf(cgroup.Waited(root, m.Cgroup))})
		}
	}
	return pods
}

func microsecondsOf(us *uint64) *nodetop.Count {
	if us == nil {
		return nil
	}
	return &nodetop.Count{Total: float64(*us) / 1e6}
}
