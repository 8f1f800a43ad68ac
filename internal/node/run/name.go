// Package run runs one command in a tier.
package run

import (
	"strings"

	"temper.dev/temper/internal/base/tier"
)

// Slice holds the cgroups of all such commands. Their names carry the tier, so that an agent that
// starts later knows them: run-TIER-NAME.
const Slice = "/temper.slice"

func cgroupName(t tier.Tier, name string) string { return "run-" + t.String() + "-" + name }

// TierOf reads the tier from a cgroup's name.
func TierOf(name string) (tier.Tier, bool) {
	rest, ok := strings.CutPrefix(name, "run-")
	if !ok {
		return 0, false
	}
	word, _, ok := strings.Cut(rest, "-")
	if !ok {
		return 0, false
	}
	t, err := tier.Parse(word)
	return t, err == nil
}
