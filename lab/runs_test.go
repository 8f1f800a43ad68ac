package lab

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRunFoldersOfKilledRunsAreSwept(t *testing.T) {
	c := Cache(t.TempDir())
	dead := c.path("runs", "dead")
	if err := os.MkdirAll(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "alive"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, leaveFirst, err := c.runFolder()
	if err != nil {
		t.Fatal(err)
	}
	second, leaveSecond, err := c.runFolder()
	if err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(c.path("runs", "*"))
	if len(left) != 2 || first == second {
		t.Errorf("runs: %v", left)
	}
	leaveFirst()
	leaveSecond()
	checkNothingLeft(t, c)
}
