//go:build guest

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/enforce"
)

// profiles is a folder of AppArmor profiles, as the kernel takes them.
const profiles = "/apparmor"

// load puts all profiles in force, for those who ask for one.
func load(t *testing.T) {
	t.Helper()
	const securityfs = "/sys/kernel/security"
	if !host.Exists(profiles) {
		t.Fatal("no profiles in " + profiles + ": 'make test-guest' puts them there")
	}
	if err := unix.Mount("securityfs", securityfs, "securityfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(securityfs, 0); err != nil {
			t.Error(err)
		}
	})
	files, err := os.ReadDir(profiles)
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(profiles, file.Name()))
		if err == nil {
			err = os.WriteFile(securityfs+"/apparmor/.replace", text, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// under is the start of a command line whose program has the profile in force.
func under(profile, program string) []string {
	return []string{"sh", "-c", `echo "exec $0" >/proc/self/attr/apparmor/exec && exec "$@"`, profile, program}
}

func doctorUnder(t *testing.T, profile, program string) (status int, said string) {
	t.Helper()
	argv := under(profile, program)
	status, stdout, stderr := finish(t, exec.Command(argv[0], append(argv[1:], "doctor")...))
	return status, stdout + stderr
}

// What a runtime confines a container with by itself refuses every pin. Doctor and agent say that, and the node is on the next rung.
func TestAppArmorOfTheRuntimeIsNamed(t *testing.T) {
	load(t)
	const want = "permission denied, with AppArmor's profile containerd-default in force; have it unconfined"
	for _, made := range []bool{false, true} {
		if made {
			if err := os.Mkdir(root.Pins(), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if status, said := doctorUnder(t, "containerd-default", "temper"); status != exit.LoadFailed || !strings.Contains(said, want) {
			t.Errorf("%s made before: %v: status %d, %s", root.Pins(), made, status, said)
		}
	}
	if err := os.Remove(root.Pins()); err != nil {
		t.Fatal(err)
	}
	a := startAgentInside(t, runs(t, under("containerd-default", "temper")), "tiers: {}")
	if s := a.await(enforce.CPUIdle); !strings.Contains(s.Reason, want) || !strings.Contains(last(s.Exits).Text, want) {
		t.Errorf("%s, %+v", s.Reason, s.Exits)
	}
}

// Under the chart's own profile all is as without one, and nothing is left.
func TestAppArmorOfTheChartSuffices(t *testing.T) {
	load(t)
	for _, name := range []string{"temper", "scx_temper"} { // where the image has them
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Link(path, "/"+name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove("/" + name) })
	}
	well := func() {
		t.Helper()
		if status, said := doctorUnder(t, "temper-agent", "/temper"); status != exit.OK {
			t.Errorf("doctor: %d, %s", status, said)
		}
	}
	well()
	if host.Exists(root.Pins()) {
		t.Errorf("doctor leaves %s", root.Pins())
	}
	// The profile lets the agent read its configuration there, and write its log.
	if err := os.MkdirAll(root.Run(""), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", root.Run(""))
	const batch = "/apparmor-batch"
	makeCgroup(t, batch)
	a := startAgentInside(t, runs(t, under("temper-agent", "/temper")), "tiers: {background: {cgroups: ["+batch+"]}}")
	a.await(enforce.SCX)
	if profile := read(t, fmt.Sprintf("/proc/%d/attr/apparmor/current", loaderPID(t))); profile != "temper-agent (enforce)" {
		t.Errorf("scx_temper is under %s", profile)
	}
	well()
	if left, _ := filepath.Glob(root.Pins() + "/try-*"); len(left) > 0 {
		t.Errorf("doctor leaves %v", left)
	}
	a.end(unix.SIGTERM)
	if host.Exists(root.Pins()) {
		t.Errorf("the agent leaves %s", root.Pins())
	}
}

// runs puts a program, and what comes before it on the command line, in the place of a command's own.
func runs(t *testing.T, program []string) func(*exec.Cmd) {
	t.Helper()
	path, err := exec.LookPath(program[0])
	if err != nil {
		t.Fatal(err)
	}
	return func(cmd *exec.Cmd) {
		cmd.Path, cmd.Err = path, nil
		cmd.Args = append(slices.Clone(program), cmd.Args[1:]...)
	}
}
