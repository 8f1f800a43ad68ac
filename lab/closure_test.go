package lab

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
	files, _, err := closureOf("/", place{"program", program})
	if err != nil {
		t.Fatal(err)
	}
	if files["lib/x86_64-linux-gnu/"+loaderName] == "" {
		t.Errorf("got %v", files)
	}
}

func TestScriptsNeedNoLibraries(t *testing.T) {
	for text, want := range map[string]error{"#!/bin/sh\n": errNoELF, "": errNoELF, "\x7fELF": errNoELF} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := readDynamics(file); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", text, err, want)
		}
	}
}
