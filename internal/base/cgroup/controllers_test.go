package cgroup

import (
	"os"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/host"
)

// without is a tree where the controller is off for what is in these cgroups.
func without(t *testing.T, off []string, cgroups ...string) host.Root {
	t.Helper()
	root := fixture.Tree(t, cgroups...)
	for _, cg := range off {
		fixture.Write(t, root, "/sys/fs/cgroup"+cg+"/cgroup.subtree_control", "")
		for _, child := range Children(root, cg) {
			if err := os.Remove(root.Cgroup(child.Path(cg) + "/cpu.weight")); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func control(t *testing.T, root host.Root, cg string) string {
	t.Helper()
	return fixture.Read(t, root, "/sys/fs/cgroup"+cg+"/cgroup.subtree_control")
}

func open(t *testing.T, root host.Root) *Controllers {
	t.Helper()
	c, err := OpenControllers(root)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAPopulatedParentIsLeftAlone(t *testing.T) {
	root := without(t, []string{"/a"}, "/a", "/a/b")
	fixture.Write(t, root, "/sys/fs/cgroup/a/cgroup.procs", "77\n")
	enabled, err := open(t, root).Enable("/a/b")
	if exit.StatusOf(err) != exit.NoCgroup || !strings.Contains(err.Error(), "/a has processes of its own") || len(enabled) != 0 {
		t.Errorf("%q, %v", enabled, err)
	}
	if got := control(t, root, "/a"); got != "" {
		t.Errorf("it has written %q", got)
	}
	// A thread root takes the controller as it is.
	fixture.Write(t, root, "/sys/fs/cgroup/a/cgroup.type", "domain threaded\n")
	if enabled, err := open(t, root).Enable("/a/b"); err != nil || !slices.Equal(enabled, []string{"/a"}) {
		t.Errorf("in a threaded domain: %q, %v", enabled, err)
	}
}

// What one agent has turned on, the next one turns off; but not what others need by then.
func TestDisable(t *testing.T) {
	root := without(t, []string{"/", "/a", "/a/b", "/c"}, "/a", "/a/b", "/a/b/x", "/c", "/c/x")
	first := open(t, root)
	for _, cg := range []string{"/a/b/x", "/c/x"} {
		if _, err := first.Enable(cg); err != nil {
			t.Fatal(err)
		}
	}
	for _, cg := range []string{"/a", "/a/b", "/a/b/x", "/c"} {
		fixture.Write(t, root, "/sys/fs/cgroup"+cg+"/cpu.weight", "100\n") // the kernel's answer
	}
	fixture.Write(t, root, "/sys/fs/cgroup/c/x/cpu.weight", "300\n") // somebody else's doing

	second := open(t, root)
	if want := []string{"/a/b", "/c", "/a", "/"}; !slices.Equal(second.Cgroups(), want) {
		t.Errorf("taken over: %q, want %q", second.Cgroups(), want)
	}
	kept, err := second.Disable()
	if err != nil || !slices.Equal(kept, []string{"/c"}) {
		t.Errorf("kept %q, %v", kept, err)
	}
	for cg, want := range map[string]string{"/": "-cpu", "/a": "-cpu", "/a/b": "-cpu", "/c": "+cpu"} {
		if got := control(t, root, cg); got != want {
			t.Errorf("%s: %q, want %q", cg, got, want)
		}
	}
	if left := open(t, root).Cgroups(); len(left) != 0 {
		t.Errorf("still remembered: %q", left)
	}
}

func TestDisableForgetsACgroupThatWasMadeAnew(t *testing.T) {
	root := fixture.Tree(t, "/a")
	fixture.Write(t, root, "/run/temper/controllers.json", `{"/a": {"id": 1, "kind": "domain"}, "/gone": {"id": 2, "kind": "domain"}}`)
	if kept, err := open(t, root).Disable(); err != nil || len(kept) != 0 || control(t, root, "/a") != "cpu" {
		t.Errorf("kept %q, %v, /a has %q", kept, err, control(t, root, "/a"))
	}
}

// A process that comes in later makes the same threaded domain as one that was there.
func TestRecheck(t *testing.T) {
	root := without(t, []string{"/a", "/b"}, "/a", "/a/x", "/b", "/b/x")
	c := open(t, root)
	for _, cg := range []string{"/a/x", "/b/x"} {
		if _, err := c.Enable(cg); err != nil {
			t.Fatal(err)
		}
	}
	if off, err := c.Recheck(); err != nil || len(off) != 0 {
		t.Errorf("nothing has changed: %q, %v", off, err)
	}
	fixture.Write(t, root, "/sys/fs/cgroup/a/cgroup.procs", "77\n")
	fixture.Write(t, root, "/sys/fs/cgroup/a/cgroup.type", "domain threaded\n")
	if off, err := c.Recheck(); err != nil || !slices.Equal(off, []string{"/a"}) || control(t, root, "/a") != "-cpu" || control(t, root, "/b") != "+cpu" {
		t.Errorf("%q, %v; /a has %q, /b %q", off, err, control(t, root, "/a"), control(t, root, "/b"))
	}
	if left := open(t, root).Cgroups(); !slices.Equal(left, []string{"/b"}) {
		t.Errorf("remembered: %q", left)
	}
}

func TestAFileThatIsNoList(t *testing.T) {
	root := fixture.Tree(t)
	fixture.Write(t, root, "/run/temper/controllers.json", "[")
	if _, err := OpenControllers(root); exit.StatusOf(err) != exit.Failed {
		t.Error(err)
	}
}
