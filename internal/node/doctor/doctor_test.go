package doctor

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/node/status"
)

const release = "6.18.15+deb13-cloud-amd64"

// healthy is a node on which every check is well; tests take away from it or add to it.
func healthy(t *testing.T) fixture.Files {
	return fixture.Files{
		"/sys/kernel/sched_ext/state":           "disabled\n",
		"/sys/kernel/sched_ext/enable_seq":      "0\n",
		"/sys/kernel/sched_ext/nr_rejected":     "0\n",
		"/sys/kernel/btf/vmlinux":               makeBTF(t, kfuncs, nil, mutex, rwsem, task),
		"/sys/kernel/security/lockdown":         "none [integrity] confidentiality\n",
		"/sys/fs/cgroup/cgroup.controllers":     "cpuset cpu io\n",
		"/sys/fs/cgroup/cgroup.subtree_control": "cpu\n",
		"/sys/fs/cgroup/a/cpu.max":              "max 100000\n",
		"/proc/mounts":                          "bpf /sys/fs/bpf bpf rw 0 0\nsecurityfs /sys/kernel/security securityfs rw 0 0\n",
		"/proc/self/status":                     "Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n",
		"/sys/kernel/debug/sched/preempt":       "none voluntary (full) lazy \n",
	}
}

// Structs of the kernel and members of theirs.
var (
	mutex = []string{"mutex", "owner", "wait_list"}
	rwsem = []string{"rw_semaphore", "owner", "first_waiter"}
	task  = []string{"task_struct", "rcu_read_unlock_special"}
)

// makeBTF is kernel type data with these functions, tagged and not, and these structs.
func makeBTF(t *testing.T, tagged, untagged []string, structs ...[]string) string {
	t.Helper()
	builder, err := btf.NewBuilder([]btf.Type{&btf.Int{Name: "int", Size: 4}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range slices.Concat(tagged, untagged) {
		f := &btf.Func{Name: name, Type: &btf.FuncProto{Return: (*btf.Void)(nil)}}
		if i < len(tagged) {
			f.Tags = []string{"bpf_kfunc"}
		}
		if _, err := builder.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, names := range structs {
		s := &btf.Struct{Name: names[0], Size: uint32(8 * len(names[1:]))}
		for i, name := range names[1:] {
			s.Members = append(s.Members, btf.Member{Name: name, Type: &btf.Pointer{Target: (*btf.Void)(nil)}, Offset: btf.Bits(64 * i)})
		}
		if _, err := builder.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	data, err := builder.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func examine(t *testing.T, files fixture.Files) []Check {
	return Node{
		Root: fixture.Node(t, files), Release: release, EUID: 0,
		FindLoader: func() (string, error) { return "/usr/sbin/scx_temper", nil },
		TryPins:    func() error { return nil },
		RealTime:   func() ([]status.RealTime, error) { return nil, nil },
	}.Examine()
}

func TestHealthy(t *testing.T) {
	checks := examine(t, healthy(t))
	if err := Verdict(checks); err != nil {
		t.Error(err)
	}
	var table bytes.Buffer
	Write(&table, checks, status.Style{})
	const golden = "testdata/healthy.txt"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if table.String() != string(want) {
		t.Errorf("%s differs:\n%s", golden, table.String())
	}
}

func TestFindings(t *testing.T) {
	const remove = "\x00"
	for _, c := range []struct {
		name, path, content string
		check               string
		level               Level
		status              int
	}{
		{name: "no sched_ext", path: "/sys/kernel/sched_ext/state", content: remove, check: "sched_ext", level: Fail, status: exit.NoSchedExt},
		{name: "no BTF", path: "/sys/kernel/btf/vmlinux", content: remove, check: "btf", level: Fail, status: exit.BadBTF},
		{name: "broken BTF", path: "/sys/kernel/btf/vmlinux", content: "no BTF at all", check: "btf", level: Fail, status: exit.BadBTF},
		{name: "BTF that lost tags", path: "/sys/kernel/btf/vmlinux", content: makeBTF(t, []string{"other"}, kfuncs), check: "btf", level: Fail, status: exit.BadBTF},
		{name: "BTF of a kernel without tags", path: "/sys/kernel/btf/vmlinux", content: makeBTF(t, nil, kfuncs), check: "btf", level: OK, status: exit.OK},
		{name: "BTF without functions", path: "/sys/kernel/btf/vmlinux", content: makeBTF(t, []string{"other"}, nil), check: "btf", level: Fail, status: exit.BadBTF},
		{name: "isolcpus", path: "/sys/devices/system/cpu/isolated", content: "1,3\n", check: "isolation", level: Fail, status: exit.IsolatedCPUs},
		{name: "isolcpus of another kind", path: "/sys/devices/system/cpu/isolated", content: "\n", check: "isolation", level: OK},
		{name: "isolated partition", path: "/sys/fs/cgroup/cpuset.cpus.isolated", content: "1\n", check: "isolation", level: OK},
		{name: "lockdown", path: "/sys/kernel/security/lockdown", content: "none integrity [confidentiality]", check: "lockdown", level: Fail, status: exit.LoadFailed},
		{name: "no lockdown in the kernel", path: "/sys/kernel/security/lockdown", content: remove, check: "lockdown", level: OK},
		{name: "cgroup v1", path: "/sys/fs/cgroup/cgroup.controllers", content: remove, check: "cgroup v2", level: Fail, status: exit.NoCgroup},
		{name: "no cpu controller", path: "/sys/fs/cgroup/cgroup.controllers", content: "memory io", check: "cgroup v2", level: Fail, status: exit.NoCgroup},
		{name: "cpu controller off", path: "/sys/fs/cgroup/cgroup.subtree_control", content: "memory", check: "cgroup v2", level: OK},
		{name: "limits", path: "/sys/fs/cgroup/a/cpu.max", content: "1000 100000", check: "limits", level: Fail, status: exit.LimitsPresent},
		{name: "no bpffs", path: "/proc/mounts", content: "sysfs /sys sysfs rw 0 0\n", check: "bpffs", level: Fail, status: exit.LoadFailed},
		{name: "no capability", path: "/proc/self/status", content: "CapEff:\t0000000000000001\n", check: "privileges", level: Fail, status: exit.NotRoot},
		{name: "the agent's capabilities in a pod", path: "/proc/self/status", content: "CapEff:\t000000c000800000\n", check: "privileges", level: OK},
		{name: "no real time", path: "/proc/self/status", content: "CapEff:\t000001ffff7fffff\n", check: "privileges", level: Fail, status: exit.NotRoot},
		{name: "lazy preemption", path: "/sys/kernel/debug/sched/preempt", content: "none voluntary full (lazy)", check: "preemption", level: OK},
		{name: "voluntary preemption", path: "/sys/kernel/debug/sched/preempt", content: "none (voluntary) full lazy", check: "preemption", level: Warn},
		{name: "preemption unknown", path: "/sys/kernel/debug/sched/preempt", content: remove, check: "preemption", level: Warn},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := healthy(t)
			files[c.path] = c.content
			if c.content == remove {
				delete(files, c.path)
			}
			checks := examine(t, files)
			found := find(checks, c.check)
			if found.Level != c.level || found.Status != c.status {
				t.Errorf("got %+v, want level %v, status %d", found, c.level, c.status)
			}
			if (found.Level == OK) != (found.Cure == "") {
				t.Errorf("a cure is for what is not well, and only for that: %+v", found)
			}
			if got := exit.StatusOf(Verdict(checks)); got != c.status {
				t.Errorf("verdict %d, want %d", got, c.status)
			}
		})
	}
}

// A limit is kept where the kernel tells a scheduler of it, or where it can be read.
func TestLimitsSource(t *testing.T) {
	for _, c := range []struct {
		known []string
		want  string
	}{
		{[]string{"sched_ext_ops", "cgroup_set_bandwidth"}, "1 with a finite cpu.max, which is kept: the kernel tells of it"},
		{[]string{"cfs_bandwidth", "quota"}, "1 with a finite cpu.max, which is kept: it is read"},
	} {
		files := healthy(t)
		files["/sys/fs/cgroup/a/cpu.max"] = "1000 100000"
		files["/sys/kernel/btf/vmlinux"] = makeBTF(t, kfuncs, nil, mutex, rwsem, task, c.known)
		if found := find(examine(t, files), "limits"); found.Level != OK || !strings.HasPrefix(found.Found, c.want) {
			t.Errorf("%v: %+v", c.known, found)
		}
	}
}

// What the kernel does not show is not claimed.
func TestPark(t *testing.T) {
	for _, c := range []struct {
		structs [][]string
		want    string
	}{
		{[][]string{mutex, rwsem, task}, "traced, who has a mutex, who has a rwsem, readers of RCU"},
		{[][]string{mutex, {"rw_semaphore", "rwbase"}}, "traced, who has a mutex, (readers of RCU need none"},
	} {
		files := healthy(t)
		files["/sys/kernel/btf/vmlinux"] = makeBTF(t, kfuncs, nil, c.structs...)
		if found := find(examine(t, files), "park"); found.Level != OK || !strings.Contains(found.Found, c.want) {
			t.Errorf("%v: %+v", c.structs, found)
		}
	}
}

// What may be known of a node's lockdown is told apart: not in the kernel, unknown.
func TestLockdownThatIsNotThere(t *testing.T) {
	for mounts, want := range map[string]Check{
		"bpf /sys/fs/bpf bpf rw 0 0\nsecurityfs /sys/kernel/security securityfs rw 0 0\n": ok("lockdown", "not in this kernel"),
		"bpf /sys/fs/bpf bpf rw 0 0\n": warn("lockdown", "unknown: securityfs is not mounted", "mount -t securityfs securityfs /sys/kernel/security"),
	} {
		files := healthy(t)
		delete(files, "/sys/kernel/security/lockdown")
		files["/proc/mounts"] = mounts
		if got := find(examine(t, files), "lockdown"); got != want {
			t.Errorf("%q: %+v, want %+v", mounts, got, want)
		}
	}
}

func find(checks []Check, name string) Check {
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	return Check{}
}

func TestOtherScheduler(t *testing.T) {
	for ops, want := range map[string]int{"rusty": exit.OtherScheduler, "temper": exit.OK} {
		files := healthy(t)
		files["/sys/kernel/sched_ext/state"] = "enabled\n"
		files["/sys/kernel/sched_ext/root/ops"] = ops + "\n"
		if got := exit.StatusOf(Verdict(examine(t, files))); got != want {
			t.Errorf("%s: status %d, want %d", ops, got, want)
		}
	}
}

func TestConfigurationOfTheKernelIsQuoted(t *testing.T) {
	files := healthy(t)
	delete(files, "/sys/kernel/sched_ext/state")
	files["/boot/config-"+release] = "CONFIG_SCHED_CLASS=y\n# CONFIG_SCHED_CLASS_EXT is not set\n"
	found := find(examine(t, files), "sched_ext").Found
	if want := "/boot/config-" + release + " says CONFIG_SCHED_CLASS_EXT is not set"; !bytes.Contains([]byte(found), []byte(want)) {
		t.Errorf("%q lacks %q", found, want)
	}
}

// That bpffs is mounted does not tell that anything can be pinned there.
func TestPinsAreTried(t *testing.T) {
	files := healthy(t)
	n := Node{
		Root: fixture.Node(t, files), Release: release, FindLoader: func() (string, error) { return "/x", nil },
		TryPins:  func() error { return exit.New(exit.LoadFailed, "have it unconfined", "a profile is in force") },
		RealTime: func() ([]status.RealTime, error) { return nil, nil },
	}
	checks := n.Examine()
	if found, want := find(checks, "bpffs"), fail(exit.LoadFailed, "bpffs", "a profile is in force", "have it unconfined"); found != want {
		t.Errorf("%+v", found)
	}
	if got := exit.StatusOf(Verdict(checks)); got != exit.LoadFailed {
		t.Errorf("verdict %d", got)
	}
	// What else is missing is the first to be cured.
	fixture.Write(t, n.Root, "/proc/self/status", "CapEff:\t0000000000000001\n")
	if checks := n.Examine(); find(checks, "bpffs").Level != OK || exit.StatusOf(Verdict(checks)) != exit.NotRoot {
		t.Errorf("%+v", checks)
	}
}

func TestOldKernelNonRootAndNoLoader(t *testing.T) {
	root := fixture.Node(t, healthy(t))
	gone := func() (string, error) { return "", errors.New("no scx_temper") }
	here := func() (string, error) { return "/x", nil }
	pinned := func() error { return nil }
	refused := func() error { return exit.New(exit.LoadFailed, "", "whoever is not root pins nothing") }
	none := func() ([]status.RealTime, error) { return nil, nil }
	for want, n := range map[int]Node{
		exit.NoSchedExt: {root, "6.1.0-deb12", 0, here, pinned, none},
		exit.NotRoot:    {root, release, 1000, gone, refused, none},
		exit.Failed:     {root, release, 0, gone, pinned, none},
	} {
		if got := exit.StatusOf(Verdict(n.Examine())); got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	}
}

func TestRealTimeTasks(t *testing.T) {
	harmless := status.RealTime{CPU: 1, Process: 5, Thread: 6, Name: "dpdk", Policy: "SCHED_FIFO", Priority: 50}
	starving := harmless
	starving.Starves = true
	for _, c := range []struct {
		task  status.RealTime
		level Level
	}{{harmless, OK}, {starving, Warn}} {
		n := Node{RealTime: func() ([]status.RealTime, error) { return []status.RealTime{c.task}, nil }}
		if got := n.realTime(); got.Level != c.level || (c.level == Warn) != strings.Contains(got.Found, "dpdk (process 5, thread 6)") {
			t.Errorf("%+v: %+v", c.task, got)
		}
	}
}
