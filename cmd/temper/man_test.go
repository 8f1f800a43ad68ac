package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra/doc"

	"temper.dev/temper"
	"temper.dev/temper/internal/evidence/docgen"
	"temper.dev/temper/internal/evidence/manual"
)

var manFolder = flag.String("man", "", "`FOLDER` to write manual pages to, below man1 and man8")

// pages are all manual pages, by their places in that folder.
func pages(t *testing.T) map[string]string {
	t.Helper()
	read := func(path string) []byte {
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	// Their date is that of SOURCE_DATE_EPOCH, where it is set.
	header := doc.GenManHeader{Section: "1", Source: "Temper " + temper.Version, Manual: "Temper"}
	all := map[string]string{}
	commands, err := manual.Commands(newRootCommand(), header, read("docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range commands {
		all["man1/"+name] = text
	}
	help, err := docgen.LoaderHelp(read("sched/options.c"))
	if err != nil {
		t.Fatal(err)
	}
	header.Section = "8"
	if all["man8/scx_temper.8"], err = manual.Loader(help, header); err != nil {
		t.Fatal(err)
	}
	return all
}

// Each command has a manual page, and so has scx_temper. 'make packages' has them written.
func TestManualPages(t *testing.T) {
	dir := *manFolder
	if dir == "" {
		dir = t.TempDir()
	}
	all := pages(t)
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wants := map[string][]string{
		"man1/temper.1": {
			"\n.SH COMMANDS\n", "\n.SH EXIT STATUS\n", "\n\\fB15\\fP\n", "\n\\fB130\\fP\n", "\n.SH FILES\n", "/etc/temper/temper.yaml", "\\fBscx_temper\\fP(8)\n",
		},
		"man8/scx_temper.8": {"\n.TP\n\\fB--tier TIER=CGROUP\\fP\n", "\n\\fB--version, --help\\fP\n", "\n.SH SIGNALS\n", "\n.SH EXIT STATUS\n"},
	}
	for _, cmd := range newRootCommand().Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" || cmd.Name() == "completion" { // these two are cobra's
			continue
		}
		name := "temper-" + cmd.Name()
		wants["man1/"+name+".1"] = []string{cmd.Short, "\n.SH EXIT STATUS\n"}
		wants["man1/temper.1"] = append(wants["man1/temper.1"], cmd.Short+". See \\fB"+name+"\\fP(1).\n")
	}
	for name, parts := range wants {
		for _, part := range parts {
			if !strings.Contains(all[name], part) {
				t.Errorf("%s lacks %q:\n%s", name, part, all[name])
			}
		}
	}
}
