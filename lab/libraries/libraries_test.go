package libraries

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoaderTravelsWithoutACLibrary(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	gcc := exec.Command("gcc", "-x", "c", "-", "-o", program, "-nostdlib", "-pie", "-Wl,-e,main")
	gcc.Stdin = strings.NewReader("int main(void) { return 0; }")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, out)
	}
	files, _, err := ClosureOf("/", Place{Guest: "program", Host: program})
	if err != nil {
		t.Fatal(err)
	}
	if files["lib/x86_64-linux-gnu/"+Loader] == "" {
		t.Errorf("got %v", files)
	}
}

func TestScriptsNeedNoLibraries(t *testing.T) {
	for text, want := range map[string]error{"#!/bin/sh\n": ErrNoELF, "": ErrNoELF, "\x7fELF": ErrNoELF} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", text, err, want)
		}
	}
}
