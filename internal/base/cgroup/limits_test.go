package cgroup

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"temper.dev/temper/internal/base/fixture"
)

// A tree that is deeper than a path can name hides nobody else's cgroups.
func TestWalkPastWhatNoPathNames(t *testing.T) {
	root := fixture.Tree(t, "/a", "/b", "/b/c")
	name := strings.Repeat("d", 250)
	at, err := syscall.Open(root.Cgroup("/a"), syscall.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := syscall.Mkdirat(at, name, 0o755); err != nil {
			t.Fatal(err)
		}
		below, err := syscall.Openat(at, name, syscall.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		syscall.Close(at)
		at = below
	}
	syscall.Close(at)
	t.Cleanup(func() { _ = os.RemoveAll(root.Cgroup("/a")) }) // which knows how, other than the test's own
	var seen []string
	if err := Walk(root, func(cg string) error { seen = append(seen, cg); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/a", "/b", "/b/c"} {
		if !slices.Contains(seen, want) {
			t.Errorf("%s was not seen", want)
		}
	}
}
