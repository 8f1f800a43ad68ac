package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/cli/clitest"
	"temper.dev/temper/internal/capacity/advice"
	"temper.dev/temper/internal/evidence/docgen"
	"temper.dev/temper/internal/evidence/docgen/docgentest"
)

func TestGeneratedDocsAreUpToDate(t *testing.T) {
	pages := map[string]string{"docs/reference/kubectl-temper.md": docgen.Commands(newRootCommand())}
	for _, kind := range []struct{ crd, page string }{{"tierpolicies", "tierpolicy"}, {"tempernodes", "tempernode"}, {"capacitypolicies", "capacitypolicy"}} {
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
	pages[advicePage] = adviceExample(t)
	docgentest.Check(t, "../..", pages)
}

const advicePage = "docs/start/advise.md"

// adviceExample is the page on advice, with what its example says.
func adviceExample(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../" + advicePage)
	if err != nil {
		t.Fatal(err)
	}
	const command = "kubectl-temper advise -f docs/start/advise-example.yaml"
	if !strings.Contains(string(page), "\n    "+command+"\n") {
		t.Fatalf("%s does not have %q", advicePage, command)
	}
	root := newRootCommand()
	var said bytes.Buffer
	root.SetArgs([]string{"advise", "-f", "../../docs/start/advise-example.yaml"})
	root.SetOut(&said)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	filled, err := docgen.Fill(page, "example", "```text\n"+said.String()+"```\n")
	if err != nil {
		t.Fatal(err)
	}
	return filled
}

// Each field of the JSON has its place on the page, and the version that it states is the program's.
func TestPageHasEachFieldOfTheJSON(t *testing.T) {
	page, err := os.ReadFile("../../" + advicePage)
	if err != nil {
		t.Fatal(err)
	}
	var look func(reflect.Type)
	look = func(in reflect.Type) {
		switch in.Kind() {
		case reflect.Pointer, reflect.Slice:
			look(in.Elem())
		case reflect.Struct:
			for field := range in.Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if name != "" && !regexp.MustCompile("`(plan\\.)?"+name+"(\\[\\])?`").Match(page) {
					t.Errorf("%s lacks the field %s of %s", advicePage, name, in)
				}
				look(field.Type)
			}
		}
	}
	look(reflect.TypeFor[advice.Advice]())
	if want := fmt.Sprintf("`schemaVersion` is %d,", advice.SchemaVersion); !strings.Contains(string(page), want) {
		t.Errorf("%s lacks %q", advicePage, want)
	}
}

func TestUsageErrors(t *testing.T) { clitest.CheckUsage(t, newRootCommand) }
