package docgen

import (
	"strings"

	"temper.dev/temper/internal/scale"
)

// AgentScale is the page of what the agent of a node takes, by the records in a folder.
func AgentScale(dir string) (string, error) {
	var tables strings.Builder
	err := each(dir, func(_ string, r scale.Record) error {
		r.Table(&tables)
		return nil
	})
	return "# What the agent takes\n" + notice + "The real agent against a real API server, with a cgroup tree that is scripted, so that it is on the rung " +
		"`cpu.idle` (`make scale`). A host that has other things to do adds to CPU time, by cold caches; how much was not measured.\n" + tables.String(), err
}
