package enforce

import (
	"reflect"
	"testing"

	"temper.dev/temper/internal/fixture"
	"temper.dev/temper/internal/host"
)

func openIdle(t *testing.T, root host.Root) *Idle {
	t.Helper()
	idle, err := OpenIdle(root)
	if err != nil {
		t.Fatal(err)
	}
	return idle
}

func expect(t *testing.T, root host.Root, cg, idle, weight string) {
	t.Helper()
	if got := fixture.Read(t, root, "/sys/fs/cgroup"+cg+"/cpu.idle"); got != idle {
		t.Errorf("%s: cpu.idle is %s, want %s", cg, got, idle)
	}
	if got := fixture.Read(t, root, "/sys/fs/cgroup"+cg+"/cpu.weight"); got != weight {
		t.Errorf("%s: cpu.weight is %s, want %s", cg, got, weight)
	}
}

func TestIdleGivesWeightsBackAfterACrash(t *testing.T) {
	root := fixture.Tree(t, "/a", "/b", "/other")
	fixture.Write(t, root, "/sys/fs/cgroup/a/cpu.weight", "300\n")
	if err := openIdle(t, root).Set([]string{"/a", "/b", "/missing"}); err != nil {
		t.Fatal(err)
	}
	// What the kernel does to cpu.weight meanwhile:
	fixture.Write(t, root, "/sys/fs/cgroup/a/cpu.weight", "0\n")
	expect(t, root, "/other", "0", "100")

	second := openIdle(t, root) // the first agent died
	if want := []string{"/a", "/b"}; !reflect.DeepEqual(second.Cgroups(), want) {
		t.Errorf("taken over: %q, want %q", second.Cgroups(), want)
	}
	if err := second.Set([]string{"/b"}); err != nil { // /a left the tier
		t.Fatal(err)
	}
	expect(t, root, "/a", "0", "300")
	expect(t, root, "/b", "1", "100")
	if err := second.Restore(); err != nil {
		t.Fatal(err)
	}
	expect(t, root, "/b", "0", "100")
	if left := openIdle(t, root).Cgroups(); len(left) != 0 {
		t.Errorf("still remembered: %q", left)
	}
}

func TestIdleLeavesWhatOthersMadeIdle(t *testing.T) {
	root := fixture.Tree(t, "/a")
	fixture.Write(t, root, "/sys/fs/cgroup/a/cpu.idle", "1\n")
	idle := openIdle(t, root)
	if err := idle.Set([]string{"/a"}); err != nil {
		t.Fatal(err)
	}
	if err := idle.Restore(); err != nil {
		t.Fatal(err)
	}
	expect(t, root, "/a", "1", "100")
}

func TestIdleForgetsACgroupThatWasMadeAnew(t *testing.T) {
	root := fixture.Tree(t, "/a", "/b")
	fixture.Write(t, root, "/run/temper/idle.json", `{"/a": {"id": 1, "cpu.weight": "300"}}`)
	if err := openIdle(t, root).Restore(); err != nil {
		t.Fatal(err)
	}
	expect(t, root, "/a", "0", "100")
}
