package agent

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
)

// A program that was named and is not there is a mistake, not something that comes later.
func TestNamedLoaderThatIsNotThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "temper.yaml")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := NewLocal(fixture.Tree(t), file, "/nosuch/scx_temper", io.Discard)
	if exit.StatusOf(err) != exit.Usage {
		t.Errorf("%v; want status %d", err, exit.Usage)
	}
}
