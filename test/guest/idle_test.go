//go:build guest

package guest

import (
	"os"
	"syscall"
	"testing"

	"temper.dev/temper/internal/node/enforce"
)

// startIdleAgent starts an agent whose scx_temper finds no type data of the kernel, and is not tried again.
func startIdleAgent(t *testing.T, config string) *agent {
	t.Helper()
	a := startAgentInside(t, inNamespaces(t, "/", "mount -t tmpfs none /sys/kernel/btf"), config)
	a.await(enforce.CPUIdle)
	return a
}

// On the rung cpu.idle others write what they like, and what they have written is there after it.
func TestIdleRungLeavesOthersTheirCgroups(t *testing.T) {
	const class, pod, later = "/kubepods/besteffort", "/kubepods/besteffort/pod0a1b2c3d-1111-2222-3333-444455556666", "/kubepods/besteffort/podffffffff-1111-2222-3333-444455556666"
	controlledCgroup(t, pod)
	controlledCgroup(t, "/taken")
	controlledCgroup(t, "/mine")
	write(t, root.Cgroup("/taken/cpu.weight"), "200")
	write(t, root.Cgroup("/mine/cpu.weight"), "200")
	a := startIdleAgent(t, "tiers:\n  background: { cgroups: ["+class+", /taken, /mine] }\n")
	idle := func(cg string) bool { return read(t, root.Cgroup(cg+"/cpu.idle")) == "1" }
	eventually(t, "they are idle", func() bool { return idle(pod) && idle("/taken") && idle("/mine") })

	// A kubelet that starts.
	write(t, root.Cgroup("/kubepods/cpu.weight"), "79")
	write(t, root.Cgroup(class+"/cpu.weight"), "1")
	makeCgroup(t, later)
	eventually(t, "a pod that comes later is idle", func() bool { return idle(later) })

	// Whoever wants a weight there.
	if err := os.WriteFile(root.Cgroup("/taken/cpu.weight"), []byte("300"), 0); err == nil {
		t.Error("the kernel takes a weight of an idle cgroup")
	}
	write(t, root.Cgroup("/taken/cpu.idle"), "0")
	write(t, root.Cgroup("/taken/cpu.weight"), "300")
	hasProblem(t, "cpu.idle of /taken was set to 0 by somebody else")
	a.end(syscall.SIGKILL)
	a.start()
	a.await(enforce.CPUIdle)
	hasProblem(t, "cpu.idle of /taken was set to 0 by somebody else")
	expectFiles(t, map[string]string{"/taken/cpu.idle": "0", "/taken/cpu.weight": "300", "/mine/cpu.idle": "1"})
	a.end(syscall.SIGTERM)
	expectFiles(t, map[string]string{
		"/taken/cpu.idle": "0", "/taken/cpu.weight": "300", "/mine/cpu.idle": "0", "/mine/cpu.weight": "200",
		"/kubepods/cpu.weight": "79", class + "/cpu.weight": "1", pod + "/cpu.idle": "0", pod + "/cpu.weight": "100",
	})
}

func TestIdleRungOnOddTrees(t *testing.T) {
	controlledCgroup(t, "/frozen/x")
	controlledCgroup(t, "/dom/threaded")
	sleepIn(t, "/frozen/x")
	write(t, root.Cgroup("/frozen/cgroup.freeze"), "1")
	t.Cleanup(func() { write(t, root.Cgroup("/frozen/cgroup.freeze"), "0") })
	write(t, root.Cgroup("/dom/threaded/cgroup.type"), "threaded")
	sleepIn(t, "/dom")
	for _, user := range []string{"/frozen", "/frozen/cpu.weight"} { // delegated
		if err := os.Chown(root.Cgroup(user), 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	before := map[string]string{"/frozen/cpu.idle": "0", "/frozen/cpu.weight": "100", "/frozen/cgroup.freeze": "1", "/dom/threaded/cpu.idle": "0", "/dom/threaded/cgroup.type": "threaded", "/dom/cgroup.type": "domain threaded"}
	expectFiles(t, before)
	a := startIdleAgent(t, "tiers:\n  background: { cgroups: [/frozen, /dom/threaded] }\n")
	eventually(t, "both are idle", func() bool {
		return read(t, root.Cgroup("/frozen/cpu.idle")) == "1" && read(t, root.Cgroup("/dom/threaded/cpu.idle")) == "1"
	})
	expectFiles(t, map[string]string{"/frozen/cgroup.freeze": "1", "/dom/threaded/cgroup.type": "threaded"})
	a.end(syscall.SIGTERM)
	expectFiles(t, before)
}

func TestIdleRungWithAReadOnlyTree(t *testing.T) {
	controlledCgroup(t, "/batch")
	inside := inNamespaces(t, "/", "mount -t tmpfs none /sys/kernel/btf && mount -o remount,bind,ro /sys/fs/cgroup")
	a := startAgentInside(t, inside, "tiers:\n  background: { cgroups: [/batch] }\n")
	a.await(enforce.CPUIdle)
	hasProblem(t, "cpu.idle of /batch: open /sys/fs/cgroup/batch/cpu.idle: read-only file system")
	a.end(syscall.SIGTERM)
	expectFiles(t, map[string]string{"/batch/cpu.idle": "0", "/batch/cpu.weight": "100"})
}
