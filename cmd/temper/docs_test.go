package main

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/base/cli/clitest"
	"temper.dev/temper/internal/evidence/docgen"
	"temper.dev/temper/internal/evidence/docgen/docgentest"
)

func TestGeneratedDocsAreUpToDate(t *testing.T) {
	docgentest.Check(t, "../..", map[string]string{"docs/reference/temper.md": docgen.Commands(newRootCommand())})
}

func TestUsageErrors(t *testing.T) { clitest.CheckUsage(t, newRootCommand) }

// The help names what a check may be called.
func TestDoctorsHelpNamesPark(t *testing.T) {
	if help := newDoctorCommand().Long; !strings.Contains(help, "(park)") {
		t.Errorf("park is not in\n%s", help)
	}
}
