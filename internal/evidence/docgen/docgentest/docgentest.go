// Package docgentest compares generated documents with those in the tree.
package docgentest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var write = flag.Bool("write-docs", false, "write the generated documents instead of comparing them")

// Check compares files, by their path in the repository, with what they should be; with -write-docs it writes them.
func Check(t *testing.T, repository string, files map[string]string) {
	t.Helper()
	for path, want := range files {
		file := filepath.Join(repository, path)
		if *write {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is out of date (%v); run 'make docs'", path, err)
		}
	}
}
