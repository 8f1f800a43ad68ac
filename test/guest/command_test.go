//go:build guest

package guest

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
	"temper.dev/temper/internal/node/nodetop"
)

func TestRunPutsACommandInItsTier(t *testing.T) {
	a := startAgent(t, "")
	a.await(enforce.SCX)
	const cg = "/temper.slice/run-background-test"
	cmd := exec.Command("temper", "run", "--tier", "background", "--name", "test", "--weight", "300", "--", "sh", "-c", "cat /proc/self/cgroup; read line; exit 5")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command's cgroup is background", func() bool {
		got, ok := mapped(t, cg)
		return ok && got == tier.Background && read(t, root.Cgroup(cg+"/cgroup.procs")) != ""
	})
	if got := read(t, root.Cgroup(cg+"/cpu.weight")); got != "300" {
		t.Errorf("cpu.weight is %s", got)
	}
	stdin.Close()
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("left with %d: %s", cmd.ProcessState.ExitCode(), &stderr)
	}
	if want := "0::" + cg + "\n"; stdout.String() != want {
		t.Errorf("the command ran in %q, want %q", stdout.String(), want)
	}
	if host.Exists(root.Cgroup(cg)) {
		t.Error("the cgroup is still there")
	}
}

func TestRunPassesSignalsOn(t *testing.T) {
	cmd := exec.Command("temper", "run", "--tier", "critical", "--name", "signal", "--", "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command runs", func() bool {
		text, err := host.Read(root.Cgroup("/temper.slice/run-critical-signal/cgroup.procs"))
		return err == nil && text != ""
	})
	cmd.Process.Signal(syscall.SIGTERM)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("left with %v", cmd.ProcessState)
	}
}

func TestRunWithoutScheduler(t *testing.T) {
	code, stdout, stderr := temperCommand(t, "run", "--tier", "background", "--name", "idle", "--",
		"cat", "/sys/fs/cgroup/temper.slice/run-background-idle/cpu.idle")
	if code != 0 || stdout != "1\n" || !strings.Contains(stderr, "cpu.idle=1 instead") {
		t.Errorf("%d, %q, %q", code, stdout, stderr)
	}
}

func TestBadConfigurations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "temper.yaml")
	if code, _, stderr := temperCommand(t, "agent", "--config", path); code != exit.Config {
		t.Errorf("missing: %d, %s", code, stderr)
	}
	for config, want := range map[string]string{
		"colour: red\n":                             `line 1: unknown key "colour"`,
		"tiers:\n  bronze: {}\n":                    `line 2: unknown tier "bronze"`,
		"tiers:\n  system:\n    cgroups: [../up]\n": "line 3",
	} {
		a := exec.Command("temper", "agent", "--config", writeFile(t, config))
		code, _, stderr := finish(t, a)
		if code != exit.Config || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: %d, %s", config, code, stderr)
		}
	}
	code, _, stderr := temperCommand(t, "agent", "--config", writeFile(t, "tiers: {}\n"), "--metrics", "nowhere")
	if code != exit.Usage || !strings.Contains(stderr, "--metrics") {
		t.Errorf("an address that is none: %d, %s", code, stderr)
	}
	if s := kernel(t); s.State != "disabled" {
		t.Errorf("the kernel says %+v", s)
	}
}

func TestNotRoot(t *testing.T) {
	for _, args := range [][]string{{"agent"}, {"run", "--tier", "background", "--", "true"}} {
		cmd := exec.Command("temper", args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if code, _, stderr := finish(t, cmd); code != exit.NotRoot || !strings.Contains(stderr, "root") {
			t.Errorf("%v: %d, %s", args, code, stderr)
		}
	}
}

func TestDoctorIsContent(t *testing.T) {
	if code, stdout, stderr := temperCommand(t, "doctor"); code != 0 {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

func TestStatusAsJSON(t *testing.T) {
	a := startAgent(t, "tiers:\n  background: { cgroups: [/none] }\n")
	a.await(enforce.SCX)
	_, stdout, _ := temperCommand(t, "status", "--json")
	var s map[string]any
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"rung", "enforced", "reason", "since", "agent", "scheduler", "limits_mode", "limits", "loader", "tiers", "gap", "cgroups", "problems", "exits"} {
		if value, ok := s[field]; !ok || value == nil {
			t.Errorf("no %s", field)
		}
	}
	loader, scheduler := s["loader"].(map[string]any), s["scheduler"].(map[string]any)
	if loader["pid"].(float64) != float64(loaderPID(t)) || loader["heartbeat_age_s"].(float64) > 5 || loader["heartbeat_timeout_s"].(float64) != 10 {
		t.Errorf("loader %v", loader)
	}
	if scheduler["ops"] != enforce.OpsName || len(s["tiers"].([]any)) != tier.Count {
		t.Errorf("scheduler %v, tiers %v", scheduler, s["tiers"])
	}
	if _, table, _ := temperCommand(t, "status"); !strings.Contains(table, "rung") || !strings.Contains(table, "background") {
		t.Errorf("table:\n%s", table)
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "temper.yaml")
	write(t, path, text)
	return path
}

// What is watched is the kernel's: the tiers' histograms are there, and the cgroup's CPU time.
func TestTop(t *testing.T) {
	makeCgroup(t, "/batch")
	a := startAgent(t, "tiers:\n  background: { cgroups: [/batch] }\n")
	a.await(enforce.SCX)
	eventually(t, "the cgroup has its tier", func() bool { _, ok := mapped(t, "/batch"); return ok })
	code, stdout, stderr := temperCommand(t, "top", "--once", "--json")
	var seen nodetop.Round
	if err := json.Unmarshal([]byte(stdout), &seen); code != 0 || err != nil || len(seen.Nodes) != 1 {
		t.Fatalf("temper top: %d, %v, %s%s", code, err, stdout, stderr)
	}
	l := seen.Nodes[0]
	if l.Enforced != "yes" || l.Rung != string(enforce.SCX) || len(l.Pods) != 1 || l.Pods[0].Name != "/batch" || l.Pods[0].CPU == nil || l.Overrun == nil {
		t.Errorf("%+v", l)
	}
	for _, tier := range l.Tiers {
		if ran := tier.CPU.Total > 0; ran != (tier.Tier == "standard") && tier.Tier != "system" || tier.Wait == nil {
			t.Errorf("%+v, CPU %+v", tier, tier.CPU)
		}
	}
	if _, table, _ := temperCommand(t, "top", "--once"); !strings.Contains(table, "OVERRUN") || !strings.Contains(table, "/batch") {
		t.Errorf("table:\n%s", table)
	}
}
