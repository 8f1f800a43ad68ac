package docgen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRecordsOfAFolderAreShownByName(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.json": `{"kernel": "6.18.1", "cpus": 4, "arms": [{"arm": "eevdf", "instructions": {"pipe": 6000}}]}`,
		"a.json": `{"kernel": "6.18.1", "cpus": 2, "arms": [{"arm": "eevdf", "instructions": {"pipe": 5000}}]}`,
		"c.txt":  "no record",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Costs(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Index(got, "## a\n"), strings.Index(got, "## b\n")
	if a < 0 || b < a || strings.Contains(got, "## c") || !strings.Contains(got[a:b], "5000") {
		t.Error(got)
	}
	// Columns are aligned to the right: the first line's spaces count.
	if !strings.Contains(got, "```text\n  ") {
		t.Error(got)
	}
	if err := os.WriteFile(filepath.Join(dir, "d.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Costs(dir); err == nil || !strings.Contains(err.Error(), "d.json") {
		t.Errorf("a broken record: got %v", err)
	}
}
