package agent

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"temper.dev/temper/internal/cgroup"
	"temper.dev/temper/internal/config"
	"temper.dev/temper/internal/host"
	"temper.dev/temper/internal/run"
	"temper.dev/temper/internal/tier"
)

const sourceRun = "run"

// Member is a cgroup that has a tier of its own.
type Member struct {
	Cgroup  string    `json:"cgroup"`
	Tier    tier.Tier `json:"tier"`
	Source  string    `json:"source"` // "config", "run" or the name of the unit
	Present bool      `json:"present"`
	ID      uint64    `json:"id,omitempty"`
}

// wanted names every cgroup that should have a tier, whether it exists or not, by path.
func wanted(root host.Root, cfg *config.Config, units map[string]string) (members []Member, problems []string) {
	seen := map[string]Member{}
	add := func(m Member) {
		if old, ok := seen[m.Cgroup]; ok {
			if old.Tier != m.Tier {
				problems = append(problems, fmt.Sprintf("%s is %s by %s and %s by %s: %s it is", m.Cgroup, old.Tier, old.Source, m.Tier, m.Source, old.Tier))
			}
			return
		}
		seen[m.Cgroup] = m
	}
	for _, cg := range slices.Sorted(maps.Keys(cfg.Cgroups)) {
		add(Member{Cgroup: cg, Tier: cfg.Cgroups[cg], Source: "config"})
	}
	for _, unit := range slices.Sorted(maps.Keys(cfg.Units)) {
		if cg := units[unit]; cg != "" {
			add(Member{Cgroup: cg, Tier: cfg.Units[unit], Source: unit})
		}
	}
	// The commands of temper run carry their tier in their cgroup's name.
	entries, _ := os.ReadDir(root.Cgroup(run.Slice)) // missing: nothing was run yet
	for _, entry := range entries {
		if t, ok := run.TierOf(entry.Name()); ok && entry.IsDir() {
			add(Member{Cgroup: path.Join(run.Slice, entry.Name()), Tier: t, Source: sourceRun})
		}
	}
	for _, cg := range slices.Sorted(maps.Keys(seen)) {
		members = append(members, seen[cg])
	}
	return members, problems
}

// prepare finds out which members exist, and sees to it that those have the cpu controller.
// It returns what it enabled.
func prepare(root host.Root, members []Member) (enabled, problems []string) {
	for i := range members {
		m := &members[i]
		id, err := cgroup.ID(root, m.Cgroup)
		if err != nil {
			continue // not there: the watcher tells when it comes
		}
		m.Present, m.ID = true, id
		files, err := cgroup.EnableCPU(root, m.Cgroup)
		enabled = append(enabled, files...)
		if err != nil && host.Exists(root.Cgroup(m.Cgroup)) {
			problems = append(problems, err.Error())
		}
	}
	return enabled, problems
}

// ids is the tier map's content for these members.
func ids(members []Member) map[uint64]tier.Tier {
	m := map[uint64]tier.Tier{}
	for _, member := range members {
		if member.Present {
			m[member.ID] = member.Tier
		}
	}
	return m
}

// background lists the members that the cpu.idle rung is about.
func background(members []Member) []string {
	var list []string
	for _, m := range members {
		if m.Present && m.Tier == tier.Background {
			list = append(list, m.Cgroup)
		}
	}
	return list
}

// runs lists the cgroups of temper run.
func runs(members []Member) []string {
	var list []string
	for _, m := range members {
		if m.Source == sourceRun {
			list = append(list, m.Cgroup)
		}
	}
	return list
}
