package run

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
)

func TestTierOfName(t *testing.T) {
	for _, want := range tier.All {
		if got, ok := TierOf(cgroupName(want, "a-b-1")); !ok || got != want {
			t.Errorf("%s: %s, %v", want, got, ok)
		}
	}
	for _, name := range []string{"", "run", "run-", "run-7", "run-bronze-7", "x-background-7"} {
		if got, ok := TierOf(name); ok {
			t.Errorf("%q passes for tier %s", name, got)
		}
	}
}

// TestApplyTierWithoutScheduler: background gets cpu.idle, the others are told that nothing changes.
func TestApplyTierWithoutScheduler(t *testing.T) {
	for want, idle := range map[tier.Tier]string{tier.Background: "1", tier.Critical: "0"} {
		root := fixture.Tree(t, Slice, Slice+"/x")
		var said bytes.Buffer
		if err := applyTier(Options{Root: root, Tier: want, Weight: 300, Stderr: &said}, Slice+"/x"); err != nil {
			t.Fatal(err)
		}
		if got := fixture.Read(t, root, "/sys/fs/cgroup"+Slice+"/x/cpu.idle"); got != idle {
			t.Errorf("%s: cpu.idle is %s, want %s", want, got, idle)
		}
		if got := fixture.Read(t, root, "/sys/fs/cgroup"+Slice+"/x/cpu.weight"); got != "300" {
			t.Errorf("%s: cpu.weight is %s", want, got)
		}
		if strings.Count(said.String(), "is not attached") != 1 {
			t.Errorf("%s: said %q", want, said.String())
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		o      Options
		status int
	}{
		"no such command": {Options{Root: fixture.Tree(t), Argv: []string{"/nonexistent"}}, exit.NotFound},
		"no cgroup v2":    {Options{Root: fixture.Node(t, nil), Argv: []string{"true"}}, exit.NoCgroup},
		"name in use":     {Options{Root: fixture.Tree(t, Slice+"/run-background-x"), Tier: tier.Background, Name: "x", Argv: []string{"true"}}, exit.Failed},
	} {
		if _, err := Run(c.o); exit.StatusOf(err) != c.status {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatusOf(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143} {
		if got, err := statusOf(exec.Command("sh", "-c", script).Run()); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", script, got, err, want)
		}
	}
	if _, err := statusOf(os.ErrClosed); err == nil {
		t.Error("another failure is swallowed")
	}
}
