package cache

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRunFoldersOfKilledRunsAreSwept(t *testing.T) {
	c := Folder(t.TempDir())
	dead := c.Path("runs", "dead")
	if err := os.MkdirAll(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "alive"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, leaveFirst, err := c.RunFolder()
	if err != nil {
		t.Fatal(err)
	}
	second, leaveSecond, err := c.RunFolder()
	if err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(c.Path("runs", "*"))
	if len(left) != 2 || first == second {
		t.Errorf("runs: %v", left)
	}
	leaveFirst()
	leaveSecond()
	if left, _ := filepath.Glob(c.Path("runs", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
