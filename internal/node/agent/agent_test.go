package agent

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
)

const batch = "tiers:\n  background: { cgroups: [/batch] }\n"

func TestAttachAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		l := n.attach(false)
		n.expect(enforce.SCX, "0")
		id, _ := cgroup.ID(n.root, "/batch")
		if want := map[uint64]enforce.Assignment{id: enforce.Assign(tier.Background, "")}; !reflect.DeepEqual(n.entries, want) {
			t.Errorf("tier map %v, want %v", n.entries, want)
		}
		n.finish()
		if !reflect.DeepEqual(l.signals, []os.Signal{syscall.SIGTERM}) {
			t.Errorf("scx_temper got %v", l.signals)
		}
		n.expect(enforce.Observe, "0")
		if n.state().PID != 0 || IsRunning(n.root) {
			t.Error("the agent seems to run")
		}
	})
}

func TestKilledLoaderIsBackWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		l := n.attach(false)
		killed := time.Now()
		l.end(137)
		n.attach(true)
		if took := time.Since(killed); took >= time.Second {
			t.Errorf("took %v", took)
		}
		s := n.state()
		if s.Rung != enforce.SCX || !strings.Contains(s.Reason, "adopted") || len(s.Exits) != 1 || s.Exits[0].Status != 137 {
			t.Errorf("state %+v", s)
		}
		n.finish()
	})
}

func TestRepeatedFailuresFallAndClimbBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		for range 5 {
			n.attach(true).end(137)
		}
		synctest.Wait()
		n.expect(enforce.CPUIdle, "1")
		if n.detach != 1 {
			t.Errorf("detached %d times", n.detach)
		}
		s := n.state()
		if s.RetryAt == nil || s.Failures != 5 || s.Reason != "ended by the test" {
			t.Errorf("state %+v", s)
		}
		n.attach(false)
		n.expect(enforce.SCX, "0")
		if len(n.starts) != 6 {
			t.Errorf("started %d times", len(n.starts))
		}
		n.finish()
	})
}

func TestRefusalFallsAtOnceAndBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		begin := time.Now()
		for range 4 { // at 0, 1, 3 and 7 s
			(<-n.loaders).end(exit.LimitsPresent)
			synctest.Wait()
			n.expect(enforce.CPUIdle, "1")
		}
		if took := time.Since(begin); took != 7*time.Second {
			t.Errorf("four attempts took %v", took)
		}
		if e := n.state().Exits; len(e) != 1 || e[0].Times != 4 {
			t.Errorf("the same refusal fills the history: %+v", e)
		}
		n.finish()
		n.expect(enforce.Observe, "0")
	})
}

// scx_temper is refused a pin and knows no more; the agent says what forbids it, in the state and among the exits.
func TestARefusedPinIsExplained(t *testing.T) {
	const ended = "ended by the test"
	for name, c := range map[string]struct {
		status int
		finds  error
		want   string
	}{
		"AppArmor":               {exit.LoadFailed, exit.New(exit.LoadFailed, "have it unconfined", "AppArmor's profile x in force"), "scx_temper left with status 8: AppArmor's profile x in force; have it unconfined"},
		"another cause":          {exit.LoadFailed, nil, ended},
		"nothing about the pins": {exit.OtherScheduler, exit.New(exit.LoadFailed, "", "not asked"), ended},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := start(t, batch, "/batch")
			n.pinError = c.finds
			(<-n.loaders).end(c.status)
			synctest.Wait()
			n.expect(enforce.CPUIdle, "1")
			if s := n.state(); s.Reason != c.want || s.Exits[0].Text != c.want {
				t.Errorf("%s: %q, %+v", name, s.Reason, s.Exits)
			}
			n.finish()
		})
	}
}

// Whether the kernel has cpu.idle, cgroups say that are there: pods come and go.
func TestFallBesideCgroupsThatGo(t *testing.T) {
	for _, c := range []struct {
		what string
		gone []string // files and cgroups that are removed before the fall
		want enforce.Rung
	}{
		{"the first is gone", []string{"/a"}, enforce.CPUIdle},
		{"all are gone", []string{"/a", "/b"}, enforce.CPUIdle},
		{"an old kernel", []string{"/a/cpu.idle", "/b"}, enforce.Observe},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := start(t, "tiers:\n  background: { cgroups: [/a, /b] }\n", "/a", "/b")
			loader := <-n.loaders
			for _, path := range c.gone {
				if err := os.RemoveAll(n.root.Cgroup(path)); err != nil {
					t.Fatal(err)
				}
			}
			loader.end(exit.LimitsPresent)
			synctest.Wait()
			if s := n.state(); s.Rung != c.want {
				t.Errorf("%s: rung %s (%s), want %s", c.what, s.Rung, s.Reason, c.want)
			}
			n.finish()
		})
	}
}

func TestNoSchedExtIsNotTriedAgainBeforeAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch+"fallback: none\n", "/batch")
		(<-n.loaders).end(exit.NoSchedExt)
		time.Sleep(time.Hour) // of the bubble
		synctest.Wait()
		n.expect(enforce.Observe, "0")
		if len(n.starts) != 1 || n.state().RetryAt != nil {
			t.Errorf("started %d times", len(n.starts))
		}
		n.signals <- syscall.SIGHUP
		n.attach(false)
		n.expect(enforce.SCX, "0")
		n.finish()
	})
}

func TestEjectionIsToldWithTheKernelsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		l := n.attach(false)
		n.setAttached(false)
		n.startError = os.ErrNotExist
		l.events <- enforce.Event{Event: enforce.EventExited, Kind: 1024, ExitCode: 3, Reason: "runnable task stall", Message: "sh[7]"}
		l.end(exit.Ejected)
		synctest.Wait()
		n.expect(enforce.Observe, "0")
		e := n.state().Exits[0]
		if e.Status != exit.Ejected || e.Kind != 1024 || e.ExitCode != 3 || e.Reason != "runnable task stall" || e.Message != "sh[7]" {
			t.Errorf("exit %+v", e)
		}
		time.Sleep(2 * time.Second) // of the bubble: the loader cannot be started, five times
		synctest.Wait()
		n.expect(enforce.CPUIdle, "1")
		n.finish()
	})
}

func TestASecondStallFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		for range 2 {
			l := n.attach(false)
			n.expect(enforce.SCX, "0")
			n.setAttached(false)
			l.events <- enforce.Event{Event: enforce.EventExited, Kind: enforce.KindStall, Reason: "runnable task stall"}
			l.end(exit.Ejected)
			synctest.Wait()
		}
		n.expect(enforce.CPUIdle, "1")
		n.finish()
	})
}

func TestCgroupsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch)
		n.attach(false)
		if m := n.state().Members; len(m) != 1 || m[0].Present || len(n.entries) != 0 {
			t.Errorf("members %+v, map %v", m, n.entries)
		}
		fixture.Cgroup(t, n.root, "/batch")
		fixture.Cgroup(t, n.root, "/temper.slice/run-critical-7")
		n.changed <- struct{}{}
		synctest.Wait()
		id, _ := cgroup.ID(n.root, "/batch")
		run, _ := cgroup.ID(n.root, "/temper.slice/run-critical-7")
		if want := map[uint64]enforce.Assignment{id: enforce.Assign(tier.Background, ""), run: enforce.Assign(tier.Critical, "")}; !reflect.DeepEqual(n.entries, want) {
			t.Errorf("tier map %v, want %v", n.entries, want)
		}
		os.RemoveAll(n.root.Cgroup("/batch"))
		os.RemoveAll(n.root.Cgroup("/temper.slice"))
		time.Sleep(resyncEvery + time.Second) // of the bubble: without the watcher's word
		synctest.Wait()
		if len(n.entries) != 0 {
			t.Errorf("tier map %v", n.entries)
		}
		n.finish()
	})
}

// The first of several changes is answered at once, the others together a little later; SyncNow waits for none.
func TestCooldownAfterAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, "tiers:\n  background: { cgroups: [/a, /b, /c] }\n")
		n.attach(false)
		appears := func(cg string) {
			fixture.Cgroup(t, n.root, cg)
			n.changed <- struct{}{}
			synctest.Wait()
		}
		appears("/a")
		appears("/b")
		if len(n.entries) != 1 {
			t.Errorf("at once there are %d entries", len(n.entries))
		}
		if !n.agent.SyncNow(t.Context()) || len(n.entries) != 2 {
			t.Errorf("once asked there are %d entries", len(n.entries))
		}
		fixture.Cgroup(t, n.root, "/c")
		time.Sleep(changeCooldown)
		synctest.Wait()
		if len(n.entries) != 3 {
			t.Errorf("after the cooldown there are %d entries", len(n.entries))
		}
		n.finish()
	})
}

// What the agent takes for granted of a cgroup holds for that one alone, and until the next resync.
func TestWhatIsTakenForGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		(<-n.loaders).end(exit.LimitsPresent)
		synctest.Wait()
		n.expect(enforce.CPUIdle, "1")
		fixture.Write(t, n.root, "/sys/fs/cgroup/batch/cpu.idle", "0") // somebody else's doing
		for range 2 {
			time.Sleep(resyncEvery + time.Second)
			synctest.Wait()
			n.expect(enforce.CPUIdle, "0")
			if p := n.state().Problems; len(p) != 1 || !strings.Contains(p[0], "by somebody else") {
				t.Errorf("problems %q", p)
			}
		}

		if err := os.Rename(n.root.Cgroup("/batch"), n.root.Cgroup("/before")); err != nil {
			t.Fatal(err)
		}
		fixture.Cgroup(t, n.root, "/batch") // another, without the controller
		if err := os.Remove(n.root.Cgroup("/batch/cpu.weight")); err != nil {
			t.Fatal(err)
		}
		n.agent.SyncNow(t.Context())
		if got := fixture.Read(t, n.root, "/sys/fs/cgroup/cgroup.subtree_control"); got != "+cpu" {
			t.Errorf("nobody has seen to its controller: %q", got)
		}
		fixture.Write(t, n.root, "/sys/fs/cgroup/batch/cpu.weight", "100") // the kernel's answer
		n.agent.SyncNow(t.Context())
		n.expect(enforce.CPUIdle, "1")
		n.finish()
	})
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch", "/x")
		l := n.attach(false)

		fixture.Write(t, n.root, configPath, "tiers: {bronze: {}}\n")
		n.signals <- syscall.SIGHUP
		synctest.Wait()
		if s := n.state(); len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "bronze") || len(n.entries) != 1 {
			t.Errorf("after a bad one: problems %q, map %v", s.Problems, n.entries)
		}

		fixture.Write(t, n.root, configPath, "tiers:\n  critical: { cgroups: [/x, /batch] }\n")
		n.signals <- syscall.SIGHUP
		synctest.Wait()
		if len(n.state().Problems) != 0 || len(n.entries) != 2 || len(n.starts) != 1 {
			t.Errorf("after a good one: %+v, map %v, started %d times", n.state(), n.entries, len(n.starts))
		}

		fixture.Write(t, n.root, configPath, "systemShare: 50\n")
		n.signals <- syscall.SIGHUP
		n.attach(false)
		if len(l.signals) != 1 || len(n.starts) != 2 || len(n.state().Exits) != 0 {
			t.Errorf("after other options: signals %v, started %d times, exits %v", l.signals, len(n.starts), n.state().Exits)
		}
		n.finish()
	})
}

// Options with which scx_temper would not start do not take the one that runs off the node. They are a problem until they are
// others.
func TestReloadOfOptionsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		l := n.attach(false)

		n.optionsError = errors.New("CPU 9 cannot be fenced")
		fixture.Write(t, n.root, configPath, "fence: 9\n"+batch)
		n.signals <- syscall.SIGHUP
		synctest.Wait()
		if s := n.state(); len(l.signals) != 0 || s.Rung != enforce.SCX || len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "CPU 9") {
			t.Errorf("got signals %v, rung %s, problems %q; want none, scx and one of CPU 9", l.signals, s.Rung, s.Problems)
		}

		n.optionsError = nil
		fixture.Write(t, n.root, configPath, "fence: 1\n"+batch)
		n.signals <- syscall.SIGHUP
		n.attach(false)
		if s := n.state(); len(l.signals) != 1 || len(s.Problems) != 0 {
			t.Errorf("of options that can be: got signals %v, problems %q; want one signal", l.signals, s.Problems)
		}
		n.finish()
	})
}

func TestAnotherAmountNeedsNoOtherLoader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, "reservation: 2.5\n")
		l := n.attach(false)
		reload := func(config string) {
			fixture.Write(t, n.root, configPath, config)
			n.signals <- syscall.SIGHUP
			synctest.Wait()
		}
		written := func(want uint64) {
			t.Helper()
			if last := len(n.reserved) - 1; last < 0 || n.reserved[last] != want || len(l.signals) != 0 {
				t.Errorf("written: %v, not %d; scx_temper had signals %v", n.reserved, want, l.signals)
			}
			if s := n.state(); s.Reserved == nil || *s.Reserved != int64(want) {
				t.Errorf("the state says %v, not %d", s.Reserved, want)
			}
		}
		written(2500)
		reload("reservation: 0.5\n")
		written(500)

		// The next one begins with what counts by then.
		l.end(exit.Failed)
		n.attach(true)
		if args := n.starts[1]; !slices.Contains(args, "0.5") || slices.Contains(args, "2.5") {
			t.Errorf("started with %q", args)
		}
		reload("tiers: {}\n")
		n.attach(false)
		if args := n.starts[2]; slices.Contains(args, "--reservation") || n.state().Reserved != nil {
			t.Errorf("without a reservation: started with %q, state %+v", args, n.state())
		}
		n.finish()
	})
}

func TestSafeMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		for range 5 {
			n.attach(true).end(137)
		}
		synctest.Wait()
		n.expect(enforce.CPUIdle, "1")
		l := n.attach(false)
		began := time.Now()
		n.safeMode("latency is odd\n")
		n.expect(enforce.Observe, "0")
		s := n.state()
		if s.Off == nil || s.Off.Reason != OffByFile || !strings.Contains(s.Reason, "latency is odd") || s.RetryAt != nil || s.Loader != 0 {
			t.Errorf("state %+v", s)
		}
		if !slices.Equal(l.signals, []os.Signal{syscall.SIGTERM}) || time.Since(began) > 0 {
			t.Errorf("signals %v after %v", l.signals, time.Since(began))
		}

		n.signals <- syscall.SIGHUP
		n.setAttached(true) // by whomever
		time.Sleep(resyncEvery + time.Second)
		synctest.Wait()
		if at, _ := n.root.Scheduler(); at.IsTemper() || len(n.starts) != 6 {
			t.Errorf("in safe mode the kernel has %+v, and scx_temper was started %d times", at, len(n.starts))
		}

		os.Remove(n.root.Path(SafeModeFile))
		n.changed <- struct{}{}
		n.attach(false)
		n.expect(enforce.SCX, "0")
		if s := n.state(); s.Off != nil || s.Failures != 0 {
			t.Errorf("afterwards: %+v", s)
		}
		n.finish()
	})
}

// What safe mode cuts short must not be taken for under way when the agent comes back.
func TestSafeModeWhileScxTemperIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		l := n.attach(false)
		l.ignore = 1
		fixture.Write(t, n.root, configPath, batch+"systemShare: 50\n")
		n.signals <- syscall.SIGHUP
		synctest.Wait()
		n.safeMode("")
		os.Remove(n.root.Path(SafeModeFile))
		n.changed <- struct{}{}
		n.attach(false).end(137)
		n.attach(true)
		if s := n.state(); len(l.signals) != 2 || len(s.Exits) != 1 || s.Exits[0].Status != 137 {
			t.Errorf("signals %v, exits %+v", l.signals, s.Exits)
		}
		fixture.Write(t, n.root, configPath, batch+"systemShare: 40\n")
		n.signals <- syscall.SIGHUP
		n.attach(false)
		if len(n.starts) != 4 {
			t.Errorf("started %d times", len(n.starts))
		}
		n.finish()
	})
}

func TestSafeModeOutlastsTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		n.attach(false)
		n.signals <- syscall.SIGUSR1
		<-n.done
		fixture.Write(t, n.root, SafeModeFile, "")
		n.startAgent()
		synctest.Wait()
		n.expect(enforce.Observe, "0")
		if at, _ := n.root.Scheduler(); at.IsTemper() || len(n.starts) != 1 || n.state().Off == nil {
			t.Errorf("the kernel has %+v, state %+v", at, n.state())
		}
		n.finish()
	})
}

func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		l := n.attach(false)
		n.signals <- syscall.SIGUSR1
		if err := <-n.done; err != nil {
			t.Error(err)
		}
		if len(l.signals) != 1 || l.signals[0] != syscall.SIGUSR1 || n.detach != 0 {
			t.Errorf("signals %v, detached %d times", l.signals, n.detach)
		}
		n.startAgent()
		n.attach(true)
		n.expect(enforce.SCX, "0")
		n.finish()
	})
}

func TestOneAgentPerNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, batch, "/batch")
		n.attach(false)
		first, stop := n.done, n.stop
		n.startAgent()
		if err := <-n.done; err == nil || !strings.Contains(err.Error(), "another temper agent") {
			t.Error(err)
		}
		stop()
		if err := <-first; err != nil {
			t.Error(err)
		}
		n.stop()
	})
}
