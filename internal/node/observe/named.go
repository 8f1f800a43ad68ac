package observe

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
)

// Named are the cgroups that somebody asks about.
type Named struct {
	roles map[string]Role
	seen  map[string]bool // a task of it, or of a cgroup below it
}

// NewNamed gives cgroups, and all below them, their roles.
func NewNamed(roles map[string]Role) *Named { return &Named{roles, map[string]bool{}} }

// RoleOf is a RoleOf that remembers of which cgroups there were tasks.
func (n *Named) RoleOf(cgroup string) Role {
	for path := cgroup; path != ""; path = filepath.Dir(path) {
		n.seen[path] = true
		if path == filepath.Dir(path) {
			break
		}
	}
	return Cgroups(n.roles)(cgroup)
}

// Answer is a report of the named cgroups.
type Answer struct {
	Report
	Share  *float64 // that background had (Report.Harvest); nil: there was nothing to have
	Unseen []string // cgroups of which no task was seen
	Known  bool     // tasks of both roles were seen; else the report has nothing to say of them
}

// Answer is what a report has to say of the named cgroups.
func (n *Named) Answer(r Report) Answer {
	a := Answer{Report: r, Unseen: []string{}}
	roles := map[Role]bool{}
	for _, cgroup := range slices.Sorted(maps.Keys(n.roles)) {
		if n.seen[cgroup] {
			roles[n.roles[cgroup]] = true
		} else {
			a.Unseen = append(a.Unseen, cgroup)
		}
	}
	a.Known = roles[Higher] && roles[Background]
	if a.Known && r.BackgroundUS+r.StrandedUS > 0 {
		a.Share = new(r.Harvest())
	}
	return a
}

// MarshalJSON writes null for what is not known.
func (a Answer) MarshalJSON() ([]byte, error) {
	type known struct {
		Report
		Share  *float64 `json:"background_share"`
		Unseen []string `json:"unseen"`
	}
	told := known{a.Report, a.Share, a.Unseen}
	if a.Known {
		return json.Marshal(told)
	}
	return json.Marshal(struct {
		known
		Violations   any `json:"violations"`
		TotalUS      any `json:"total_us"`
		ExcessUS     any `json:"excess_us"`
		P50US        any `json:"p50_us"`
		P99US        any `json:"p99_us"`
		P999US       any `json:"p999_us"`
		MaxUS        any `json:"max_us"`
		Histogram    any `json:"histogram"`
		HigherUS     any `json:"higher_us"`
		BackgroundUS any `json:"background_us"`
		StrandedUS   any `json:"stranded_us"`
	}{known: told})
}
