//go:build guest

package guest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/enforce"
)

// sleepIn starts a process in a cgroup, which ends with the test.
func sleepIn(t *testing.T, cg string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "10000")
	startIn(t, cmd, cg)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

func startIn(t *testing.T, cmd *exec.Cmd, cg string) {
	t.Helper()
	dir, err := os.Open(root.Cgroup(cg))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func move(t *testing.T, cmd *exec.Cmd, cg string) {
	t.Helper()
	write(t, root.Cgroup(cg+"/cgroup.procs"), strconv.Itoa(cmd.Process.Pid))
}

// expectFiles compares files of cgroups with what they should be.
func expectFiles(t *testing.T, want map[string]string) {
	t.Helper()
	for file, value := range want {
		if got := read(t, root.Cgroup(file)); got != value {
			t.Errorf("%s is %q, want %q", file, got, value)
		}
	}
}

// hasProblem waits until temper status names a problem.
func hasProblem(t *testing.T, text string) {
	t.Helper()
	eventually(t, "a problem: "+text, func() bool { return strings.Contains(strings.Join(look(t).Problems, "\n"), text) })
}

func TestAgentDamagesNoPopulatedParent(t *testing.T) {
	makeCgroup(t, "/a/b")
	makeCgroup(t, "/a/own")
	sleeper := sleepIn(t, "/a")
	a := startAgent(t, "tiers:\n  critical: { cgroups: [/a/b] }\n")
	a.await(enforce.SCX)
	asBefore := map[string]string{"/a/cgroup.type": "domain", "/a/b/cgroup.type": "domain", "/a/cgroup.subtree_control": ""}
	hasProblem(t, "/a has processes of its own")
	expectFiles(t, asBefore)

	// The cure.
	move(t, sleeper, "/a/own")
	eventually(t, "the controller is on", func() bool { return read(t, root.Cgroup("/a/cgroup.subtree_control")) == "cpu" })
	eventually(t, "the problem is gone", func() bool { return len(look(t).Problems) == 0 })
	move(t, sleeper, "/a/b")

	// The harm done later, by another.
	move(t, sleeper, "/")
	move(t, sleeper, "/a")
	if got := read(t, root.Cgroup("/a/b/cgroup.type")); got != "domain invalid" {
		t.Fatalf("the kernel makes a populated parent no threaded domain: %q", got)
	}
	hasProblem(t, "/a has processes of its own")
	expectFiles(t, asBefore)
	move(t, sleeper, "/a/b")
	eventually(t, "the controller is on", func() bool { return read(t, root.Cgroup("/a/cgroup.subtree_control")) == "cpu" })
	a.end(syscall.SIGTERM)
	expectFiles(t, asBefore)
}

// A crash leaves the controller on, and the next agent turns it off.
func TestNextAgentTurnsTheControllerOff(t *testing.T) {
	makeCgroup(t, "/a/b")
	makeCgroup(t, "/c/d")
	a := startAgent(t, "tiers:\n  critical: { cgroups: [/a/b, /c/d] }\n")
	a.await(enforce.SCX)
	a.end(syscall.SIGKILL)
	expectFiles(t, map[string]string{"/a/cgroup.subtree_control": "cpu", "/c/cgroup.subtree_control": "cpu"})
	write(t, root.Cgroup("/c/d/cpu.weight"), "300") // by somebody who counts on it
	a.start()
	a.await(enforce.SCX)
	a.end(syscall.SIGTERM)
	expectFiles(t, map[string]string{"/a/cgroup.subtree_control": "", "/c/cgroup.subtree_control": "cpu", "/c/d/cpu.weight": "300"})
}

// enable turns the controller on for cg, and off again when undo is called, which leaves the tree as it was.
func enable(t *testing.T, cg string) (undo func()) {
	t.Helper()
	controllers, err := cgroup.OpenControllers(root)
	if err != nil {
		t.Fatal(err)
	}
	enabled, err := controllers.Enable(cg)
	if err != nil || len(enabled) == 0 {
		t.Fatalf("turned on in %q: %v", enabled, err)
	}
	return func() {
		t.Helper()
		if kept, err := controllers.Disable(); err != nil || len(kept) > 0 {
			t.Errorf("kept on in %q: %v", kept, err)
		}
		for _, above := range enabled {
			expectFiles(t, map[string]string{above + "/cgroup.subtree_control": ""})
		}
	}
}

func TestControllerInAThreadedSubtree(t *testing.T) {
	makeCgroup(t, "/a/t/u")
	makeCgroup(t, "/a/invalid/x")
	write(t, root.Cgroup("/a/t/cgroup.type"), "threaded")
	write(t, root.Cgroup("/a/t/u/cgroup.type"), "threaded")
	sleeper := sleepIn(t, "/a")
	before := map[string]string{"/a/cgroup.type": "domain threaded", "/a/t/cgroup.type": "threaded", "/a/t/u/cgroup.type": "threaded", "/a/invalid/cgroup.type": "domain invalid"}
	expectFiles(t, before)
	undo := enable(t, "/a/t/u")
	expectFiles(t, before)
	write(t, root.Cgroup("/a/t/u/cgroup.threads"), strconv.Itoa(sleeper.Process.Pid))
	write(t, root.Cgroup("/a/cgroup.threads"), strconv.Itoa(sleeper.Process.Pid))
	undo()
	expectFiles(t, before)

	controllers, err := cgroup.OpenControllers(root)
	if err != nil {
		t.Fatal(err)
	}
	_, err = controllers.Enable("/a/invalid/x")
	if exit.StatusOf(err) != exit.NoCgroup || !strings.Contains(err.Error(), "make /a/invalid threaded") {
		t.Errorf("in a cgroup that can have no controllers: %v", err)
	}
	if _, err := controllers.Disable(); err != nil {
		t.Error(err)
	}
	expectFiles(t, before)
}

func TestControllerInAFrozenCgroup(t *testing.T) {
	makeCgroup(t, "/a/b")
	sleepIn(t, "/a/b")
	write(t, root.Cgroup("/a/cgroup.freeze"), "1")
	t.Cleanup(func() { write(t, root.Cgroup("/a/cgroup.freeze"), "0") })
	frozen := func() bool { return strings.Contains(read(t, root.Cgroup("/a/b/cgroup.events")), "frozen 1") }
	eventually(t, "the process is frozen", frozen)
	undo := enable(t, "/a/b")
	if !frozen() {
		t.Error("it has thawed")
	}
	undo()
	if !frozen() {
		t.Error("it has thawed")
	}
}

// Whoever a cgroup was delegated to can go on as before.
func TestControllerInADelegatedCgroup(t *testing.T) {
	const user = 1000
	makeCgroup(t, "/a/b")
	makeCgroup(t, "/a/c")
	sleeper := sleepIn(t, "/a/b")
	for _, name := range []string{"/a", "/a/cgroup.procs", "/a/cgroup.subtree_control", "/a/b", "/a/b/cgroup.procs", "/a/c", "/a/c/cgroup.procs"} {
		if err := os.Chown(root.Cgroup(name), user, user); err != nil {
			t.Fatal(err)
		}
	}
	asUser := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", script, err, out)
		}
	}
	undo := enable(t, "/a/b")
	pid := strconv.Itoa(sleeper.Process.Pid)
	asUser("mkdir /sys/fs/cgroup/a/new && rmdir /sys/fs/cgroup/a/new && echo " + pid + " >/sys/fs/cgroup/a/c/cgroup.procs")
	undo()
	enable(t, "/a/b")
	asUser("echo -cpu >/sys/fs/cgroup/a/cgroup.subtree_control")
	expectFiles(t, map[string]string{"/a/cgroup.subtree_control": "", "/a/cgroup.type": "domain"})
}

// inNamespaces runs the agent in mount and cgroup namespaces of its own; prepare is a line of shell.
func inNamespaces(t *testing.T, cg, prepare string) func(*exec.Cmd) {
	t.Helper()
	dir, err := os.Open(root.Cgroup(cg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return func(cmd *exec.Cmd) {
		argv := append([]string{"sh", "-c", prepare + ` && exec "$@"`, "sh"}, cmd.Args...)
		cmd.Path, cmd.Args = "/bin/sh", argv
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWCGROUP}
	}
}

// The root of a cgroup namespace looks like that of the tree, and is a cgroup like any other.
func TestAgentInACgroupNamespace(t *testing.T) {
	makeCgroup(t, "/ns/batch/deep")
	inside := inNamespaces(t, "/ns", "umount /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup")
	a := startAgentInside(t, inside, "tiers:\n  background: { cgroups: [/batch/deep] }\n")
	a.await(enforce.SCX)
	hasProblem(t, "/ has processes of its own")
	expectFiles(t, map[string]string{"/ns/cgroup.type": "domain", "/ns/batch/cgroup.type": "domain", "/ns/cgroup.subtree_control": ""})
	a.end(syscall.SIGTERM)
}

func TestAgentWithAReadOnlyTree(t *testing.T) {
	makeCgroup(t, "/a/b")
	inside := inNamespaces(t, "/", "mount -o remount,bind,ro /sys/fs/cgroup")
	a := startAgentInside(t, inside, "tiers:\n  background: { cgroups: [/a/b] }\n")
	a.await(enforce.SCX)
	hasProblem(t, "mount the cgroup tree read-write")
	a.end(syscall.SIGTERM)
	expectFiles(t, map[string]string{"/a/cgroup.subtree_control": ""})
}
