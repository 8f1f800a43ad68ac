//go:build guest

package guest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf/btf"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/enforce"
)

func TestAttachAndDetach(t *testing.T) {
	before := kernel(t)
	l := attach(t)
	if s := kernel(t); s.EnableSeq != before.EnableSeq+1 {
		t.Errorf("enable_seq went from %d to %d", before.EnableSeq, s.EnableSeq)
	}
	if status := l.leave(t, syscall.SIGTERM); status != exit.OK {
		t.Errorf("left with %d", status)
	}
	// The loader returns only when the kernel is done.
	if s := kernel(t); s.State != "disabled" || s.NrRejected != before.NrRejected {
		t.Errorf("after SIGTERM the kernel says %+v; before, %+v", s, before)
	}
	if _, err := enforce.ReadPinned(root.Pins()); !errors.Is(err, enforce.ErrNotPinned) {
		t.Errorf("pins: %v", err)
	}
}

func TestUnpinnedSchedulerLeavesWithItsLoader(t *testing.T) {
	l := attach(t, "--no-pin")
	l.leave(t, syscall.SIGKILL)
	eventually(t, "the stock scheduler", func() bool { return kernel(t).State == "disabled" })
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		why  string
		args []string
	}{
		{"no such tier: 'gold'", []string{"--tier", "gold=/sys/fs/cgroup"}},
		{"TIER=CGROUP", []string{"--tier", "critical"}},
		{"'--colour'", []string{"--colour"}},
		{"no such option, or one that takes no value: '--json=1'", []string{"--json=1"}},
		{"'now'", []string{"now"}},
		{"not a number from 0 to 100: '101'", []string{"--system-share", "101"}},
		{"not a number from 0 to 86400: 'soon'", []string{"--heartbeat-timeout", "soon"}},
		{"not a number of CPUs: '-1'", []string{"--reservation", "-1"}},
		{"not a number of CPUs: 'nan'", []string{"--reservation", "nan"}},
		{"not a number of CPUs: '2,5'", []string{"--reservation", "2,5"}},
		{"no value for '--heartbeat-timeout'", []string{"--heartbeat-timeout"}},
	} {
		refused(t, exit.Usage, c.why, exec.Command("scx_temper", c.args...))
	}
}

func TestMissingCgroupIsRefused(t *testing.T) {
	const none = "/sys/fs/cgroup/none"
	refused(t, exit.Config, "no cgroup "+none, exec.Command("scx_temper", "--tier", "critical="+none))
	refused(t, exit.Config, "no cgroup /proc/version", exec.Command("scx_temper", "--tier", "critical=/proc/version"))
	refused(t, exit.Config, "no cgroup "+none, exec.Command("scx_temper", "--check", "--tier", "critical="+none))
}

func TestLoaderNeedsRoot(t *testing.T) {
	cmd := exec.Command("scx_temper")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	refused(t, exit.NotRoot, "root", cmd)
}

// without is scx_temper where an empty file system hides a part of /sys.
func without(path string) *exec.Cmd {
	return exec.Command("unshare", "-m", "sh", "-c", "mount -t tmpfs none "+path+" && exec scx_temper")
}

func TestKernelWithoutWhatItTakesIsRefused(t *testing.T) {
	refused(t, exit.NoSchedExt, "no sched_ext", without("/sys/kernel"))
	refused(t, exit.BadBTF, "no type data", without("/sys/kernel/btf"))
	refused(t, exit.NoCgroup, "no cgroup v2", without("/sys/fs/cgroup"))
}

// Debian's 7.1.13 is such a kernel: a tag is lost, and the prototype is not what a loader expects.
func TestKernelWhoseFunctionsLostTheirTagsIsRefused(t *testing.T) {
	refused(t, exit.BadBTF, "lacks the tag bpf_kfunc on scx_bpf_kick_cpu", withTypes(t, untagged("scx_bpf_kick_cpu")))
}

// untagged changes type data to where a function has neither tag nor arguments. All others have theirs, on a kernel
// built without any tags too.
func untagged(name string) func(btf.Type) {
	return func(typ btf.Type) {
		if f, ok := typ.(*btf.Func); ok && f.Name == name {
			f.Tags, f.Type = nil, &btf.FuncProto{Return: (*btf.Void)(nil)}
		} else if ok && strings.Contains(f.Name, "bpf_") {
			f.Tags = []string{"bpf_kfunc"}
		}
	}
}

// withTypes runs scx_temper where the kernel's type data is changed.
func withTypes(t *testing.T, change func(btf.Type)) *exec.Cmd {
	t.Helper()
	const types = "/sys/kernel/btf/vmlinux"
	spec, err := btf.LoadSpec(types)
	if err != nil {
		t.Fatal(err)
	}
	var all []btf.Type
	for typ, err := range spec.All() {
		if err != nil {
			t.Fatal(err)
		}
		change(typ)
		all = append(all, typ)
	}
	builder, err := btf.NewBuilder(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := builder.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "vmlinux")
	if err := os.WriteFile(changed, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return exec.Command("unshare", "-m", "sh", "-c", "mount --bind "+changed+" "+types+" && exec scx_temper")
}

func TestAnotherSchedulerIsLeftAlone(t *testing.T) {
	attach(t)
	refused(t, exit.OtherScheduler, "temper is attached", exec.Command("scx_temper", "--no-pin"))
	refused(t, exit.OtherScheduler, "temper is attached", exec.Command("scx_temper", "--pin", "/sys/fs/bpf/elsewhere"))
	// One whose loader is alive is in somebody's charge: its pins must stay.
	refused(t, exit.OtherScheduler, "has attached the scheduler", exec.Command("scx_temper", "--system-share", "30"))
	if s, err := enforce.ReadPinned(root.Pins()); err != nil || s.Info.SystemSharePct != 20 {
		t.Errorf("%v: %+v", err, s)
	}
}
