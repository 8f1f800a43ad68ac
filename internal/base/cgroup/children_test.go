package cgroup

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"temper.dev/temper/internal/base/fixture"
)

// More cgroups than the kernel lists at a time, beside files and links, with the ids that stat says.
func TestChildren(t *testing.T) {
	root := fixture.Tree(t, "/a")
	var want []Child
	for i := range 1000 {
		name := fmt.Sprintf("pod%036d", i)
		if err := os.Mkdir(root.Cgroup("/a/"+name), 0o755); err != nil {
			t.Fatal(err)
		}
		id, err := ID(root, "/a/"+name)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, Child{name, id})
	}
	fixture.Write(t, root, "/sys/fs/cgroup/a/pod", "")
	if err := os.Symlink(".", root.Cgroup("/a/podlink")); err != nil {
		t.Fatal(err)
	}
	got := Children(root, "/a")
	slices.SortFunc(got, func(a, b Child) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	if !slices.Equal(got, want) {
		t.Errorf("%d children, not %d: %v", len(got), len(want), got)
	}
	if got := want[7].Path("/a"); got != "/a/"+want[7].Name {
		t.Error(got)
	}
	for _, cg := range []string{"/missing", "/a/pod", "/a/" + want[0].Name} {
		if got := Children(root, cg); len(got) > 0 {
			t.Errorf("%s has %v", cg, got)
		}
	}
}
