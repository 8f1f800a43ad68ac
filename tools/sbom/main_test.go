package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// This test is a Go program, and so is its own material.
func TestBill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := []string{filepath.Join(t.TempDir(), "1"), filepath.Join(t.TempDir(), "2")}
	var texts [2][]byte
	for i, file := range out {
		if err := run(file, []string{self, "main.go=dpkg"}); err != nil {
			t.Fatal(err)
		}
		if texts[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("the same programs have two bills")
	}
	var bill cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(texts[0]), cdx.BOMFileFormatJSON).Decode(&bill); err != nil {
		t.Fatal(err)
	}
	programs := *bill.Components
	if len(programs) != 2 || len((*programs[0].Hashes)[0].Value) != 64 {
		t.Fatalf("%+v", programs)
	}
	purls := ""
	for _, program := range programs {
		for _, part := range *program.Components {
			purls += part.PackageURL + "\n"
		}
	}
	for _, want := range []string{"pkg:golang/std@1.", "pkg:golang/github.com/CycloneDX/cyclonedx-go@v", "pkg:deb/debian/dpkg@1."} {
		if !strings.Contains(purls, want) {
			t.Errorf("no %s among\n%s", want, purls)
		}
	}
}

func TestWhatHasNoBill(t *testing.T) {
	for program, want := range map[string]string{
		"main.go":                 "name the packages",
		"main.go=no-such-package": "is it installed",
		"none":                    "none",
	} {
		if err := run(filepath.Join(t.TempDir(), "out"), []string{program}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", program, err)
		}
	}
}
