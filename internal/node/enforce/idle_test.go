package enforce

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/host"
)

func openIdle(t *testing.T, root host.Root) *Idle {
	t.Helper()
	idle, err := OpenIdle(root)
	if err != nil {
		t.Fatal(err)
	}
	return idle
}

// there are cgroups as the agent knows them; one that is not there has been removed since.
func there(t *testing.T, root host.Root, paths ...string) (list []Cgroup) {
	t.Helper()
	for _, path := range paths {
		id, _ := cgroup.ID(root, path)
		list = append(list, Cgroup{path, max(id, 1)})
	}
	return list
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
	if err := openIdle(t, root).Set(there(t, root, "/a", "/b", "/missing")); err != nil {
		t.Fatal(err)
	}
	// What the kernel does to cpu.weight meanwhile:
	fixture.Write(t, root, "/sys/fs/cgroup/a/cpu.weight", "0\n")
	expect(t, root, "/other", "0", "100")

	second := openIdle(t, root) // the first agent died
	if want := []string{"/a", "/b"}; !reflect.DeepEqual(second.Cgroups(), want) {
		t.Errorf("taken over: %q, want %q", second.Cgroups(), want)
	}
	if err := second.Set(there(t, root, "/b")); err != nil { // /a left the tier
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
	if err := idle.Set(there(t, root, "/a")); err != nil {
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

// What was looked at is looked at again only if it is another cgroup by now, or if it had left; or after Recheck: TestIdleLeavesToOthersWhatTheyTake.
func TestIdleLooksAgain(t *testing.T) {
	root := fixture.Tree(t, "/a", "/b")
	idle := openIdle(t, root)
	set := func(cgs ...Cgroup) {
		t.Helper()
		if err := idle.Set(cgs); err != nil {
			t.Fatal(err)
		}
	}
	both := there(t, root, "/a", "/b")
	set(both...)

	// One that is there still has its inode number for itself: a file system may give another the number of one that is gone.
	if err := os.Rename(root.Cgroup("/a"), root.Cgroup("/gone")); err != nil {
		t.Fatal(err)
	}
	fixture.Cgroup(t, root, "/a")
	set(there(t, root, "/a", "/b")...)
	expect(t, root, "/a", "1", "100")

	both = there(t, root, "/a", "/b")
	set(both[1])
	expect(t, root, "/a", "0", "100")
	set(both...)
	expect(t, root, "/a", "1", "100")
}

// Whoever writes 0 has taken the cgroup over, with the weight that it has by then, whatever agents come and go.
func TestIdleLeavesToOthersWhatTheyTake(t *testing.T) {
	root := fixture.Tree(t, "/a", "/b")
	idle := openIdle(t, root)
	both := there(t, root, "/a", "/b")
	set := func() {
		t.Helper()
		idle.Recheck()
		if err := idle.Set(both); err != nil {
			t.Fatal(err)
		}
	}
	others := func(value, weight string) {
		fixture.Write(t, root, "/sys/fs/cgroup/a/cpu.idle", value)
		fixture.Write(t, root, "/sys/fs/cgroup/a/cpu.weight", weight)
	}
	set()
	others("0", "300")
	for range 2 { // the agent, and the one after it
		set()
		expect(t, root, "/a", "0", "300")
		expect(t, root, "/b", "1", "100")
		if p := idle.Problems(); len(p) != 1 || !strings.Contains(p[0], "cpu.idle of /a was set to 0 by somebody else") {
			t.Errorf("problems %q", p)
		}
		idle = openIdle(t, root)
	}
	if err := idle.Restore(); err != nil {
		t.Fatal(err)
	}
	expect(t, root, "/a", "0", "300")

	// Taken over, and given back.
	set()
	expect(t, root, "/a", "1", "300")
	others("0", "500")
	set()
	others("1", "0")
	set()
	if p := idle.Problems(); len(p) != 0 {
		t.Errorf("problems %q", p)
	}
	if err := idle.Restore(); err != nil {
		t.Fatal(err)
	}
	expect(t, root, "/a", "0", "500")
}

// An agent that dies before it writes cpu.idle has remembered a weight for nothing.
func TestIdleAfterACrashBeforeTheWrite(t *testing.T) {
	root := fixture.Tree(t, "/a")
	id, err := cgroup.ID(root, "/a")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, root, "/run/temper/idle.json", fmt.Sprintf(`{"/a": {"id": %d, "cpu.weight": "50"}}`, id))
	idle := openIdle(t, root)
	if err := idle.Set(there(t, root, "/a")); err != nil {
		t.Fatal(err)
	}
	expect(t, root, "/a", "1", "100")
	if p := idle.Problems(); len(p) != 0 {
		t.Errorf("problems %q", p)
	}
}
