package agent

import (
	"fmt"
	"path"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/node/config"
)

// Source says what a node's tiers should be. All but Changed is for the agent's own goroutine.
type Source interface {
	// Look says what is wanted now.
	Look() Wanted
	// Refresh asks again what is too slow to be asked at each look.
	Refresh()
	// Reload reads again what is read once. What was read before stays if it fails.
	Reload() error
	// Changed receives after a change that cgroups do not show; changes that come together are told once.
	Changed() <-chan struct{}
}

// Wanted is what a Source asks for.
type Wanted struct {
	Config           *config.Config // how scx_temper is started, and what stands in for it
	File             string         // that it is from
	Policy           string         // the TierPolicy that applies; "": none
	CriticalMilliCPU int64          // what critical pods request, in thousandths of a CPU
	Off              *Off           // nil: tiers are to be in force
	Members          []Member       // each cgroup that should have a tier of its own, whether it exists or not
	Parents          []string       // cgroups whose children may become members
	Problems         []string       // what is not as it should be, one line each

	at map[string]int // where in Members a cgroup is
}

// Add adds a member. Of two tiers of one cgroup the first holds, and the other is a problem.
func (w *Wanted) Add(m Member) {
	i, there := w.at[m.Cgroup]
	if !there {
		if w.at == nil {
			w.at = map[string]int{}
		}
		w.at[m.Cgroup] = len(w.Members)
		w.Members = append(w.Members, m)
		return
	}
	if old := w.Members[i]; old.Tier != m.Tier {
		w.Problems = append(w.Problems, fmt.Sprintf("%s is %s by %s and %s by %s: %s it is", m.Cgroup, old.Tier, old.Source, m.Tier, m.Source, old.Tier))
	}
}

// watchList names cgroups whose coming and going matters.
func (w *Wanted) watchList() []string {
	var cgs []string
	for _, m := range w.Members {
		cgs = append(cgs, m.Cgroup)
		if cgroup.IsKubelets(m.Cgroup) { // the cpu.idle rung is about the pods in it
			cgs = append(cgs, path.Join(m.Cgroup, "any"))
		}
	}
	for _, parent := range w.Parents {
		cgs = append(cgs, path.Join(parent, "any"))
	}
	return cgs
}

// Off is why a node is left to the kernel's own scheduler on purpose.
type Off struct {
	Reason  string `json:"reason"` // one of the constants
	Message string `json:"message"`
}

// Reasons of Off.
const (
	OffByFile = "SafeModeFile" // SafeModeFile exists
	OffByNode = "SafeModeNode" // a label of the Node asks for safe mode
	NoPolicy  = "NoPolicy"     // no TierPolicy selects the node
	NoNode    = "NoNode"       // the API server has no node of this name
	NotKnown  = "NotKnown"     // the API server has not said yet what the node should be
)

// SafeModeFile keeps the node in safe mode while it exists, also after a reboot. What it says is shown as the reason.
const SafeModeFile = "/etc/temper/safe-mode"
