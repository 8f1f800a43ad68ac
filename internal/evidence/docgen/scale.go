package docgen

import (
	"strings"

	"temper.dev/temper/internal/evidence/scale"
)

// AgentScale is the page of what the agent of a node takes, by the records in a folder.
func AgentScale(dir string) (string, error) {
	var tables strings.Builder
	err := each(dir, func(_ string, r scale.Record) error {
		r.Table(&tables)
		return nil
	})
	return "# What the agent takes, and a full node\n" + notice + "What the agent takes is that of the real one against a real API server, with a cgroup tree that is " +
		"scripted, so that it is on the rung `cpu.idle` (`make scale`). A host that has other things to do adds to CPU time, by cold caches; how much was not measured. " +
		"What exec takes is measured on a node with a real kubelet and containerd, by its own clock, which counts instructions: 1e9 a second of its two CPUs " +
		"together (`make e2e RECORDS=records/agent`; decision 37).\n" + tables.String(), err
}
