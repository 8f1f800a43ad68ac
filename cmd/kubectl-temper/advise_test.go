package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestASnapshotIsItsOwners(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.json")
	if err := writeFile(file, func(w io.Writer) error { _, err := io.WriteString(w, "{}"); return err }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Mode().Perm(), os.FileMode(0o600); got != want {
		t.Errorf("mode %v, want %v", got, want)
	}
}
