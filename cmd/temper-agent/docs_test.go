package main

import (
	"testing"

	"temper.dev/temper/internal/base/cli/clitest"
	"temper.dev/temper/internal/cluster/nodemetrics"
	"temper.dev/temper/internal/evidence/docgen"
	"temper.dev/temper/internal/evidence/docgen/docgentest"
)

func TestGeneratedDocsAreUpToDate(t *testing.T) {
	scale, err := docgen.AgentScale("../../records/agent")
	if err != nil {
		t.Fatal(err)
	}
	docgentest.Check(t, "../..", map[string]string{
		"docs/reference/agent-scale.md":   scale,
		"docs/reference/temper-agent.md":  docgen.Commands(newRootCommand()),
		"docs/reference/agent-metrics.md": docgen.AgentMetrics(nodemetrics.Metrics()),
	})
}

func TestUsageErrors(t *testing.T) { clitest.CheckUsage(t, newRootCommand) }
