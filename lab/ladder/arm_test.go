package ladder

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/plan"
)

// groups is a ladder whose cgroups are plain files.
func groups(t *testing.T) *ladder {
	t.Helper()
	l := &ladder{Site: Site{
		Cgroups:       t.TempDir(),
		SetPreemption: func(mode string) (string, error) { return mode, nil },
	}}
	if err := l.makeCgroups(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"critical/cpu.weight", "background/cpu.weight", "background/cpu.idle"} {
		if err := os.WriteFile(l.cgroup(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *ladder) groupsText(t *testing.T) string {
	t.Helper()
	var words []string
	for _, file := range []string{"critical/cpu.weight", "background/cpu.weight", "background/cpu.idle"} {
		text, err := os.ReadFile(l.cgroup(file))
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, string(text))
	}
	return strings.Join(words, " ")
}

func TestArmsChangeTheirGroupsAndLeaveThemAsTheyWere(t *testing.T) {
	l := groups(t)
	for name, want := range map[string]string{
		"eevdf": "100 1 0", "weight-1": "1 1 0", "weight-10000": "10000 1 0", "cpuidle": "100 1 1", "sched-idle": "100 1 0", "fifo": "100 1 0",
	} {
		arm, _ := plan.FindArm(name)
		_, leave, err := l.enterArm(t.Context(), arm)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.groupsText(t); got != want || l.arm.Name != name {
			t.Errorf("%s: groups %q under arm %q, want %q", name, got, l.arm.Name, want)
		}
		if err := leave(); err != nil {
			t.Fatal(err)
		}
		if got := l.groupsText(t); got != "100 1 0" || l.arm.Name != "" {
			t.Errorf("%s left groups %q and arm %q", name, got, l.arm.Name)
		}
	}
}

func TestProgramsLearnTheirPolicy(t *testing.T) {
	for policy, want := range map[plan.Policy]bool{plan.FIFO: true, plan.SchedIdle: true, "": false} {
		cmd := exec.Command("true")
		underPolicy(cmd, policy)
		if got := slices.Contains(cmd.Env, "LADDER_POLICY="+string(policy)); got != want || len(cmd.Env) > 1 {
			t.Errorf("%q: environment %q", policy, cmd.Env)
		}
	}
}

func TestWorkersOfAnotherPolicyInvalidateAWindow(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	check := func(want plan.Policy, counts bool) {
		t.Helper()
		reason, err := policyReason(want, []*exec.Cmd{cmd})
		if err != nil || (reason == "") != counts {
			t.Errorf("wanted policy %q: %q, %v", want, reason, err)
		}
	}
	check("", true)
	check(plan.SchedIdle, false)
	attr, err := unix.SchedGetAttr(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	attr.Policy = unix.SCHED_IDLE
	if err := unix.SchedSetAttr(cmd.Process.Pid, attr, 0); err != nil {
		t.Fatal(err)
	}
	check("", false)
	check(plan.SchedIdle, true)
}

// fakeWeb is a generator that answers nothing and leaves its arguments.
func fakeWeb(t *testing.T, load float64) (l *ladder, arguments func() []string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "web")
	script := "#!/bin/sh\necho \"$@ $LADDER_POLICY\" >>" + dir + "/arguments\necho sent=1200 elapsed_ns=1000000000 work=0 background_usec=0 service_usec=0\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	l = &ladder{
		Plan: plan.Plan{Scenario: plan.Web, Load: load, CPUs: 4, WarmUp: 2, Seed: 1},
		Site: Site{Dir: dir, StageIterations: LabIterations, Find: func(string) (string, error) { return program, nil }},
	}
	return l, func() []string {
		text, err := os.ReadFile(dir + "/arguments")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

func TestWebIsOfferedItsShareOfSaturation(t *testing.T) {
	for load, want := range map[float64]string{0.5: "600 61875 0 2 ", 1: "0 61875 0 2 "} {
		l, arguments := fakeWeb(t, load)
		saturation, err := web{}.calibrate(t.Context(), l)
		if err != nil || saturation != 1200 || l.rate != load*1200 {
			t.Errorf("load %g: saturation %g, rate %g, %v", load, saturation, l.rate, err)
		}
		got := arguments()
		if len(got) != 2 || !strings.HasPrefix(got[0], "0 61875 1 1 ") || !strings.HasPrefix(got[1], want) {
			t.Errorf("load %g: the generator was called with %q", load, got)
		}
	}
}

func TestTheServiceRunsUnderTheArmsPolicy(t *testing.T) {
	l, arguments := fakeWeb(t, 1)
	l.arm, _ = plan.FindArm("fifo")
	if _, err := (web{}).load(t.Context(), l, 0, 1, 1); err != nil {
		t.Fatal(err)
	}
	if got := arguments(); !strings.HasSuffix(got[0], " fifo") {
		t.Errorf("the generator was called with %q", got)
	}
}

func TestReservedArm(t *testing.T) {
	l := &ladder{Plan: plan.Plan{CPUs: 4}, options: []any{"--limits", "gap"}}
	for name, want := range map[string]string{"temper": "[--limits gap]", "temper-reserved": "[--limits gap --reservation 4]"} {
		arm, _ := plan.FindArm(name)
		if got := fmt.Sprint(l.optionsOf(arm)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
