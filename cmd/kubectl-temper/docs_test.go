package main

import (
	"os"
	"testing"

	"temper.dev/temper/internal/evidence/docgen"
	"temper.dev/temper/internal/evidence/docgen/docgentest"
)

func TestGeneratedDocsAreUpToDate(t *testing.T) {
	pages := map[string]string{"docs/reference/kubectl-temper.md": docgen.Commands(newRootCommand())}
	for _, kind := range []struct{ crd, page string }{{"tierpolicies", "tierpolicy"}, {"tempernodes", "tempernode"}} {
		crd, err := os.ReadFile("../../packaging/kubernetes/crds/temper.dev_" + kind.crd + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		page, err := docgen.API(crd)
		if err != nil {
			t.Fatal(err)
		}
		pages["docs/reference/"+kind.page+".md"] = page
	}
	docgentest.Check(t, "../..", pages)
}
