package cgroup

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/host"
)

func TestAncestors(t *testing.T) {
	for cg, want := range map[string][]string{
		"/a":     {"/"},
		"/a/b/c": {"/", "/a", "/a/b"},
	} {
		if got := Ancestors(cg); !reflect.DeepEqual(got, want) {
			t.Errorf("Ancestors(%q) = %q, want %q", cg, got, want)
		}
	}
}

func TestIDIsOfTheDirectory(t *testing.T) {
	root := fixture.Tree(t, "/a", "/b")
	a, err := ID(root, "/a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := ID(root, "/b")
	if err != nil || a == b || a == 0 {
		t.Errorf("ids %d and %d, %v", a, b, err)
	}
	if _, err := ID(root, "/c"); !os.IsNotExist(err) {
		t.Errorf("missing cgroup: %v", err)
	}
	if _, err := ID(root, "/a/cpu.max"); err == nil {
		t.Error("a file passes for a cgroup")
	}
}

func TestEnableCPUWritesOnlyWhatIsOff(t *testing.T) {
	root := fixture.Tree(t, "/a", "/a/b")
	fixture.Write(t, root, "/sys/fs/cgroup/a/cgroup.subtree_control", "memory cpuset\n")
	if err := os.Remove(root.Cgroup("/a/b/cpu.weight")); err != nil {
		t.Fatal(err)
	}
	written, err := EnableCPU(root, "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/a"}; !reflect.DeepEqual(written, want) {
		t.Errorf("wrote in %q, want %q", written, want)
	}
	if got := fixture.Read(t, root, "/sys/fs/cgroup/a/cgroup.subtree_control"); got != "+cpu" {
		t.Errorf("subtree_control got %q", got)
	}
	if got := fixture.Read(t, root, "/sys/fs/cgroup/a/b/cgroup.subtree_control"); got != "cpu" {
		t.Errorf("the cgroup's own subtree_control was touched: %q", got)
	}
}

func TestCheck(t *testing.T) {
	if err := Check(fixture.Tree(t)); err != nil {
		t.Error(err)
	}
	none := fixture.Node(t, nil)
	noCPU := fixture.Node(t, fixture.Files{"/sys/fs/cgroup/cgroup.controllers": "cpuset memory\n"})
	for _, root := range []host.Root{none, noCPU} {
		if err := Check(root); exit.StatusOf(err) != exit.NoCgroup {
			t.Errorf("%s: %v", root, err)
		}
	}
}

func TestLimits(t *testing.T) {
	root := fixture.Tree(t, "/a", "/a/b", "/c")
	fixture.Write(t, root, "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n")
	got, err := Limits(root)
	if want := []Limit{{"/a/b", "50000 100000"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestFind(t *testing.T) {
	root := fixture.Tree(t, "/a", "/a/x.service", "/x.service")
	got, err := Find(root, "x.service")
	if want := []string{"/a/x.service", "/x.service"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// TestWatcher waits for a cgroup two levels below what exists.
func TestWatcher(t *testing.T) {
	root := fixture.Tree(t, "/a")
	if err := os.Mkdir(root.Path("/always"), 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := NewWatcher(root, "/always")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	watched := 1
	follow := func() {
		t.Helper()
		more, err := w.Follow([]string{"/a/b/c"})
		if err != nil {
			t.Fatal(err)
		}
		before := watched
		if watched = len(w.notify.WatchList()); more != (watched > before) {
			t.Errorf("it says %t of more to watch: %d directories, %d before", more, watched, before)
		}
	}
	changeAt := func(what func(string, os.FileMode) error, dir string) {
		t.Helper()
		if err := what(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		<-w.Changed()
		follow()
	}
	change := func(what func(string, os.FileMode) error, cg string) {
		t.Helper()
		changeAt(what, root.Cgroup(cg))
	}
	remove := func(dir string, _ os.FileMode) error { return os.Remove(dir) }
	changeAt(os.Mkdir, root.Path("/always/file"))
	follow()
	changeAt(remove, root.Path("/always/file"))
	change(os.Mkdir, "/a/b")
	change(os.Mkdir, "/a/b/c")
	change(remove, "/a/b/c")
	change(remove, "/a/b")
	change(os.Mkdir, "/a/b")
}

// Above each cgroup all that exists is watched, whatever it has in common with others.
func TestWhatIsWatched(t *testing.T) {
	root := fixture.Tree(t, "/a", "/a/b", "/a/b/c", "/d")
	w, err := NewWatcher(root)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, c := range []struct{ cgs, want []string }{
		{[]string{"/x", "/y"}, []string{"/"}},
		{[]string{"/a/b/c/x", "/a/b/c/y", "/x", "/d/x/y", "/d/x/z"}, []string{"/", "/a", "/a/b", "/a/b/c", "/d"}},
		{[]string{"/d/x", "/a/b"}, []string{"/", "/a", "/d"}},
	} {
		if _, err := w.Follow(c.cgs); err != nil {
			t.Fatal(err)
		}
		got := w.notify.WatchList()
		slices.Sort(got)
		var want []string
		for _, cg := range c.want {
			want = append(want, root.Cgroup(cg))
		}
		if !slices.Equal(got, want) {
			t.Errorf("for %q it watches %q, not %q", c.cgs, got, want)
		}
	}
}
