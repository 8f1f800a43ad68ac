package nodepods

import (
	"time"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
)

// offByFlag is why a node is left alone whose agent was started so.
const offByFlag = "SafeModeFlag"

// Given is what an agent was told as it was started. It comes before what the node's own configuration says, but for tiers of
// cgroups: what a node says of itself is nearer to it.
type Given struct {
	agent.Source                   // the node's own
	HeartbeatTimeout time.Duration // for how long an attached scheduler waits for the next agent
	SafeMode         bool
	System           []string // cgroups of the kubelet, the container runtime and the like, where they are not in system.slice
}

// Look says what the node's own source asks for, and what was given in its place.
func (g Given) Look() agent.Wanted {
	w := g.Source.Look()
	changed := *w.Config
	changed.HeartbeatTimeout = g.HeartbeatTimeout
	w.Config = &changed
	if g.SafeMode && w.Off == nil {
		w.Off = &agent.Off{Reason: offByFlag, Message: "safe mode: the agent was started with --safe-mode"}
	}
	for _, cg := range g.System {
		w.Add(agent.Member{Cgroup: cg, Tier: tier.System, Source: "flag"})
	}
	return w
}
