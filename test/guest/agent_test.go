//go:build guest

package guest

import (
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
)

const batch = "tiers:\n  background: { cgroups: [/batch] }\n"

func TestAgentPutsCgroupsInTiers(t *testing.T) {
	makeCgroup(t, "/batch/inner")
	a := startAgent(t, batch+"  critical: { cgroups: [/later/deep] }\n")
	before := a.await(enforce.SCX)
	if got, ok := mapped(t, "/batch"); !ok || got != tier.Background {
		t.Errorf("/batch: %v, %v", got, ok)
	}

	// A cgroup without an entry of its own inherits: CPU time spent in it counts as background.
	spin := exec.Command("sh", "-c", "echo 0 > /sys/fs/cgroup/batch/inner/cgroup.procs; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
	if out, err := spin.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	after := look(t)
	if used := after.Tiers[tier.Background].CPUSeconds - before.Tiers[tier.Background].CPUSeconds; used <= 0 {
		t.Errorf("background has used %v s", used)
	}

	makeCgroup(t, "/later/deep")
	eventually(t, "/later/deep is critical", func() bool { got, ok := mapped(t, "/later/deep"); return ok && got == tier.Critical })
	if !host.Exists(root.Cgroup("/later/deep/cpu.weight")) {
		t.Error("the cpu controller is not enabled for /later/deep")
	}
	removeCgroup(t, "/later/deep")
	eventually(t, "the entry of /later/deep is gone", func() bool { return look(t).Tiers[tier.Critical].Cgroups == 0 })
}

func TestMetricsAreServed(t *testing.T) {
	makeCgroup(t, "/batch")
	a := startAgent(t, batch, "--metrics", "127.0.0.1:9770")
	a.await(enforce.SCX)
	answer, err := http.Get("http://127.0.0.1:9770/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	served, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %s", err, answer.Status)
	}
	for _, want := range []string{"temper_enforced 1", `temper_rung{rung="scx"} 1`, `temper_tier_cgroups{tier="background"} 1`} {
		if !strings.Contains(string(served), "\n"+want+"\n") {
			t.Errorf("%s is not there", want)
		}
	}
	if _, used, _ := strings.Cut(string(served), `temper_tier_cpu_seconds_total{tier="standard"} `); used == "" || strings.HasPrefix(used, "0\n") {
		t.Error("this test has used no CPU time")
	}
	code, printed, stderr := temperCommand(t, "metrics")
	if lines := strings.Count(printed, "\n"); code != exit.OK || lines != strings.Count(string(served), "\n") {
		t.Errorf("temper metrics: %d, %s; it prints %d lines, served were\n%s", code, stderr, lines, served)
	}
}

func TestKilledLoaderIsReplacedWithoutAGap(t *testing.T) {
	a := startAgent(t, batch)
	a.await(enforce.SCX)
	seq, pid := kernel(t).EnableSeq, loaderPID(t)
	killed := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "scx_temper has adopted the scheduler, which was attached all the time", func() bool {
		if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
			t.Fatalf("%+v, enable_seq was %d", s, seq)
		}
		return strings.Contains(read(t, root.Run("status.json")), "adopted")
	})
	// Not asserted, since the guest's clock is the busy host's: that the agent waits for nothing
	// before it starts scx_temper again is a test of internal/node/agent.
	t.Logf("a loader was back after %v", time.Since(killed))
	s := look(t)
	if len(s.Exits) == 0 || s.Exits[len(s.Exits)-1].Status != 128+int(syscall.SIGKILL) {
		t.Errorf("exits %+v", s.Exits)
	}
}

func TestRepeatedFailuresFallToIdleAndClimbBack(t *testing.T) {
	makeCgroup(t, "/batch")
	a := startAgent(t, batch)
	a.await(enforce.SCX)
	write(t, root.Cgroup("/batch/cpu.weight"), "300")
	for last, kills := 0, 0; kills < 5; kills++ {
		eventually(t, "scx_temper runs", func() bool { pid := loaderPID(t); return pid != 0 && pid != last && look(t).Enforced })
		last = loaderPID(t)
		if err := syscall.Kill(last, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the agent says that it fell", func() bool { return strings.Contains(a.said(), `"rung cpu.idle" why="scx_temper was killed`) })
	eventually(t, "rung scx again", func() bool { return look(t).Rung == enforce.SCX })
	eventually(t, "/batch has its weight back", func() bool {
		return read(t, root.Cgroup("/batch/cpu.idle")) == "0" && read(t, root.Cgroup("/batch/cpu.weight")) == "300"
	})
}

func TestSafeMode(t *testing.T) {
	a := startAgent(t, batch)
	t.Cleanup(func() { temperCommand(t, "safe-mode", "off") })
	for _, killed := range []bool{false, true} { // with an agent, and beside a scheduler that a dead one has left
		a.await(enforce.SCX)
		if killed {
			a.end(syscall.SIGKILL)
		}
		if code, _, stderr := temperCommand(t, "safe-mode", "on", "--reason", "a test"); code != exit.OK {
			t.Fatalf("status %d: %s", code, stderr)
		}
		if s := kernel(t); s.State != "disabled" {
			t.Errorf("in safe mode the kernel says %+v", s)
		}
		if killed {
			a.start()
		}
		s := a.await(enforce.Observe)
		if !strings.Contains(s.Reason, "a test") {
			t.Errorf("the reason is %q", s.Reason)
		}
		if code, _, stderr := temperCommand(t, "safe-mode", "off"); code != exit.OK {
			t.Errorf("status %d: %s", code, stderr)
		}
	}
	a.await(enforce.SCX)
}

// Whoever is to have the kernel's own scheduler has it, also beside an agent that hangs or a scx_temper without one.
func TestSafeModeWithoutAnAgentsHelp(t *testing.T) {
	for _, c := range []struct {
		name   string
		attach func(t *testing.T)
		says   string // what status says beforehand, once the file is there
	}{
		{"an agent that hangs", func(t *testing.T) {
			a := startAgent(t, batch)
			a.await(enforce.SCX)
			if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = a.cmd.Process.Signal(syscall.SIGCONT) })
		}, "has not acted on it"},
		{"scx_temper alone", func(t *testing.T) { attach(t) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.attach(t)
			t.Cleanup(func() { temperCommand(t, "safe-mode", "off") })
			write(t, root.Path("/etc/temper/safe-mode"), "odd\n")
			if p := look(t).Problems; c.says != "" && !slices.ContainsFunc(p, func(p string) bool { return strings.Contains(p, c.says) }) {
				t.Errorf("problems %q, want one that %s", p, c.says)
			}
			if code, _, stderr := temperCommand(t, "safe-mode", "on"); code != exit.OK {
				t.Errorf("status %d: %s", code, stderr)
			}
			if s := kernel(t); s.State != "disabled" {
				t.Errorf("the kernel says %+v", s)
			}
		})
	}
}

func TestAgentDeathLeavesTheSchedulerToTheNext(t *testing.T) {
	a := startAgent(t, batch+"heartbeatTimeout: 60s\n") // longer than a starved guest takes to start an agent
	a.await(enforce.SCX)
	seq := kernel(t).EnableSeq
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGUSR1} {
		a.end(signal)
		if s := kernel(t); !s.IsTemper() {
			t.Fatalf("after %v: %+v", signal, s)
		}
		if s := look(t); s.Rung != enforce.SCX || s.Agent.Running {
			t.Errorf("after %v: rung %s (%s), agent %+v", signal, s.Rung, s.Reason, s.Agent)
		}
		a.start()
		a.await(enforce.SCX)
		if got := kernel(t).EnableSeq; got != seq {
			t.Errorf("after %v: enable_seq %d, was %d: not adopted", signal, got, seq)
		}
	}
}

func TestOrphanLeavesByItself(t *testing.T) {
	a := startAgent(t, batch+"heartbeatTimeout: 5s\n")
	a.await(enforce.SCX)
	a.end(syscall.SIGKILL)
	eventually(t, "the orphan leaves by itself", func() bool { return kernel(t).State == "disabled" })
}

func TestEjectionIsToldAndAnswered(t *testing.T) {
	a := startAgent(t, batch)
	a.await(enforce.SCX)
	seq := kernel(t).EnableSeq
	write(t, "/proc/sysrq-trigger", "S")
	eventually(t, "attached anew", func() bool { s := kernel(t); return s.IsTemper() && s.EnableSeq > seq })
	s := a.await(enforce.SCX)
	if len(s.Exits) == 0 || s.Exits[len(s.Exits)-1].Reason == "" || s.Exits[len(s.Exits)-1].Status != exit.Ejected {
		t.Errorf("exits %+v", s.Exits)
	}
}

func TestReload(t *testing.T) {
	makeCgroup(t, "/batch")
	a := startAgent(t, batch)
	a.await(enforce.SCX)
	reload := func(config string) {
		write(t, a.config, config)
		a.cmd.Process.Signal(syscall.SIGHUP)
	}
	reload("tiers:\n  bronze: {}\n")
	eventually(t, "the fault is told", func() bool { return strings.Contains(strings.Join(look(t).Problems, " "), `unknown tier "bronze"`) })
	reload("tiers:\n  critical: { cgroups: [/batch] }\n")
	eventually(t, "/batch is critical", func() bool { got, ok := mapped(t, "/batch"); return ok && got == tier.Critical })
	seq := kernel(t).EnableSeq
	reload("fence: 500\n")
	eventually(t, "a fence that cannot be is told", func() bool { return strings.Contains(strings.Join(look(t).Problems, " "), "CPU 500 cannot be fenced") })
	if s := kernel(t); !s.IsTemper() || s.EnableSeq != seq {
		t.Errorf("after a fence that cannot be the kernel has %+v, want the scheduler that was attached", s)
	}
}
