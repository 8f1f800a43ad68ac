package main

import (
	"os"
	"testing"

	"temper.dev/temper/internal/docgen"
	"temper.dev/temper/internal/docgen/docgentest"
)

func TestGeneratedDocsAreUpToDate(t *testing.T) {
	crd, err := os.ReadFile("../../packaging/kubernetes/crds/temper.dev_tierpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	api, err := docgen.API(crd)
	if err != nil {
		t.Fatal(err)
	}
	docgentest.Check(t, "../..", map[string]string{
		"docs/reference/kubectl-temper.md": docgen.Commands(newRootCommand()),
		"docs/reference/tierpolicy.md":     api,
	})
}
