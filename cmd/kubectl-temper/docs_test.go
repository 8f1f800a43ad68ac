package main

import (
	"flag"
	"os"
	"testing"

	"temper.dev/temper/internal/docgen"
)

var writeDocs = flag.Bool("write-docs", false, "write the generated documents instead of comparing them")

func TestGeneratedDocsAreUpToDate(t *testing.T) {
	crd, err := os.ReadFile("../../packaging/kubernetes/crds/temper.dev_tierpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	api, err := docgen.API(crd)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"../../docs/reference/kubectl-temper.md": docgen.Commands(newRootCommand()),
		"../../docs/reference/tierpolicy.md":     api,
	} {
		if *writeDocs {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what it should be; run 'make docs' (%v)", path, err)
		}
	}
}
