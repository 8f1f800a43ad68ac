package main

import (
	"testing"

	"temper.dev/temper/internal/base/cli/clitest"
	"temper.dev/temper/internal/capacity/controller"
	"temper.dev/temper/internal/evidence/docgen"
	"temper.dev/temper/internal/evidence/docgen/docgentest"
)

func TestGeneratedDocsAreUpToDate(t *testing.T) {
	docgentest.Check(t, "../..", map[string]string{
		"docs/reference/temper-controller.md":  docgen.Commands(newRootCommand()),
		"docs/reference/controller-metrics.md": docgen.ControllerMetrics(controller.Metrics()),
	})
}

func TestUsageErrors(t *testing.T) { clitest.CheckUsage(t, newRootCommand) }
