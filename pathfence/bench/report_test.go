package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"temper.dev/temper/pathfence/bench/page"
)

// The page beside the records shows them as they are.
func TestPageIsUpToDate(t *testing.T) {
	files, err := filepath.Glob("../../records/pathfence/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d records: %v", len(files), err)
	}
	records, err := readAll(files)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := page.Write(&want, records); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../records/pathfence/report.html")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("records/pathfence/report.html is not what its records show: 'make pathfence-report'")
	}
}

// With a page as without one, --check fails where a bar is missed, and not where all hold; and what is none is no result.
func TestPageChecks(t *testing.T) {
	for _, c := range []struct {
		record, flag string
		fails        bool
	}{{"network", "--check", false}, {"media", "--check", true}, {"network", "--regardless", true}} {
		cmd := newCommand()
		cmd.SetArgs([]string{"report", "../../records/pathfence/" + c.record + ".json", "--html", filepath.Join(t.TempDir(), "page.html"), c.flag})
		if err := cmd.ExecuteContext(t.Context()); (err != nil) != c.fails {
			t.Errorf("%s with %s: %v", c.record, c.flag, err)
		}
	}
}
