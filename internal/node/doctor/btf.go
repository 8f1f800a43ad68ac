package doctor

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/kernels"
)

// kfuncs are kernel functions that every sched_ext scheduler must be able to call.
var kfuncs = []string{"scx_bpf_create_dsq", "scx_bpf_kick_cpu", "scx_bpf_task_cpu"}

const kfuncMark = "bpf_kfunc"

// btf asks whether a loader can find those functions. Some kernels (Debian's 7.1.13 and 7.2.12,
// built with pahole 1.30) have the functions but not the mark on them that makes them callable. Older ones have
// no such marks on any function, and need none.
func (n Node) btf() Check {
	const name = "btf"
	path := n.Root.Path("/sys/kernel/btf/vmlinux")
	spec, err := btf.LoadSpec(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(exit.BadBTF, name, path+" does not exist", "boot a kernel with CONFIG_DEBUG_INFO_BTF=y")
	}
	if err != nil {
		return fail(exit.BadBTF, name, path+" cannot be read: "+err.Error(), "boot another build of the kernel")
	}
	var missing, unmarked []string
	for _, name := range kfuncs {
		var function *btf.Func
		if err := spec.TypeByName(name, &function); err != nil {
			missing = append(missing, name)
		} else if !slices.Contains(function.Tags, kfuncMark) {
			unmarked = append(unmarked, name)
		}
	}
	switch {
	case len(missing) > 0:
		return fail(exit.BadBTF, name, path+" has no "+strings.Join(missing, ", "), kernels.Cure)
	case len(unmarked) > 0 && marks(spec):
		return fail(exit.BadBTF, name, path+" lacks the tag "+kfuncMark+" on "+strings.Join(unmarked, ", ")+
			", so no loader can resolve it: this kernel was built with a pahole that drops the tags (Debian's 7.1.13 and 7.2.12 are)",
			"boot another build of the kernel, such as Debian's 6.18 to 7.0, or 7.2.13 and later")
	}
	return ok(name, "present, with the functions that sched_ext needs")
}

// marks tells whether any function is marked.
func marks(spec *btf.Spec) bool {
	for t, err := range spec.All() {
		if f, ok := t.(*btf.Func); ok && err == nil && slices.Contains(f.Tags, kfuncMark) {
			return true
		}
	}
	return false
}

// park tells what the scheduler can see of that others wait for, so that who has it is helped through (sched/inheritance.bpf.h).
// It is there or not with the kernel's build; type data that cannot be read is another check's business.
func (n Node) park() Check {
	const name = "park"
	spec, err := btf.LoadSpec(n.Root.Path("/sys/kernel/btf/vmlinux"))
	if err != nil {
		return warn(name, "the kernel's type data cannot be read", "see btf")
	}
	helped := []string{"tasks that exit, stop, freeze or are traced"}
	for _, lock := range []struct{ name, owner string }{{"mutex", "mutex"}, {"rwsem", "rw_semaphore"}} {
		if hasMember(spec, lock.owner, "owner") && (hasMember(spec, lock.owner, "wait_list") || hasMember(spec, lock.owner, "first_waiter")) {
			helped = append(helped, "who has a "+lock.name)
		}
	}
	if hasMember(spec, "task_struct", "rcu_read_unlock_special") {
		helped = append(helped, "readers of RCU")
	} else {
		helped = append(helped, "(readers of RCU need none: this kernel does not interrupt them)")
	}
	return ok(name, "what others wait for gets through: "+strings.Join(helped, ", "))
}

// limitsSource is how a scheduler comes to know cpu.max here; "": in no way.
func (n Node) limitsSource() string {
	spec, err := btf.LoadSpec(n.Root.Path("/sys/kernel/btf/vmlinux"))
	switch {
	case err != nil:
		return ""
	case hasMember(spec, "sched_ext_ops", "cgroup_set_bandwidth"):
		return "the kernel tells of it"
	case hasMember(spec, "cfs_bandwidth", "quota"):
		return "it is read out of the kernel's memory, since this one tells no scheduler of it"
	}
	return ""
}

func hasMember(spec *btf.Spec, name, member string) bool {
	var s *btf.Struct
	return spec.TypeByName(name, &s) == nil && slices.ContainsFunc(s.Members, func(m btf.Member) bool { return m.Name == member })
}
