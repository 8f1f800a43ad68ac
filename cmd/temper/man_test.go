package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra/doc"

	"temper.dev/temper"
)

var manFolder = flag.String("man", "", "`FOLDER` to write manual pages to")

// Each command has a manual page. 'make packages' has them written.
func TestManualPages(t *testing.T) {
	dir := *manFolder
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root := newRootCommand()
	root.DisableAutoGenTag = true
	// Their date is that of SOURCE_DATE_EPOCH, where it is set.
	header := &doc.GenManHeader{Title: "TEMPER", Section: "1", Source: "Temper " + temper.Version, Manual: "Temper"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" || cmd.Name() == "completion" { // these two are cobra's
			continue
		}
		page := filepath.Join(dir, "temper-"+cmd.Name()+".1")
		text, err := os.ReadFile(page)
		if err != nil {
			t.Errorf("%s: %v", cmd.CommandPath(), err)
			continue
		}
		if !strings.Contains(string(text), cmd.Short) {
			t.Errorf("%s does not say %q", page, cmd.Short)
		}
	}
}
