package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/tier"
)

func TestParse(t *testing.T) {
	cfg, err := Parse([]byte(`
tiers:
  critical: { cgroups: [/kubepods/x], units: [nginx.service] }
  background:
    cgroups: [/batch]
limits: gap
heartbeatTimeout: 0s
systemShare: 30
reservation: 2.5
fence: 2-3,6
loans: idle
smt: exclusive
fallback: none
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Cgroups: map[string]tier.Tier{"/kubepods/x": tier.Critical, "/batch": tier.Background},
		Units:   map[string]tier.Tier{"nginx.service": tier.Critical},
		Limits:  LimitsGap, HeartbeatTimeout: 0, SystemShare: 30, Reservation: new(int64(2500)),
		Fence: cpuset.New(2, 3, 6), Loans: LoansIdle, SMT: SMTExclusive, Fallback: FallbackNone,
	}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("got %+v, want %+v", cfg, want)
	}
}

func TestDefaults(t *testing.T) {
	example, err := os.ReadFile("../../../packaging/temper.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{Cgroups: map[string]tier.Tier{}, Units: map[string]tier.Tier{},
		HeartbeatTimeout: 10 * time.Second, SystemShare: 20, Limits: LimitsPaced, Loans: LoansGaps, SMT: SMTShare, Fallback: FallbackIdle}
	for name, text := range map[string]string{"empty": "", "comment": "# nothing\n", "the shipped example": string(example)} {
		cfg, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(cfg, want) {
			t.Errorf("%s: got %+v, want %+v", name, cfg, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "limit: true\n", `line 1: unknown key "limit": use tiers, limits`},
		{"unknown tier", "tiers:\n  bronze: {}\n", `line 2: unknown tier "bronze": use system, critical`},
		{"unknown key in a tier", "tiers:\n  system:\n    pods: []\n", `line 3: unknown key "pods": use cgroups or units`},
		{"relative", "tiers:\n  system:\n    cgroups: [a/b]\n", `line 3: cgroup "a/b" is relative`},
		{"escaping", "tiers:\n  system:\n    cgroups: [/a/../../b]\n", "line 3: cgroup \"/a/../../b\": .. is not allowed"},
		{"escaping at the end", "tiers:\n  system:\n    cgroups: [/a/..]\n", "line 3"},
		{"root", "tiers:\n  system:\n    cgroups: [/]\n", "the root cannot have a tier"},
		{"unclean", "tiers:\n  system:\n    cgroups: [/a//b]\n", "line 3: cgroup \"/a//b\": write /a/b"},
		{"mount point", "tiers:\n  system:\n    cgroups: [/sys/fs/cgroup/a]\n", "leave /sys/fs/cgroup out"},
		{"twice", "tiers:\n  system:\n    cgroups: [/a]\n  background:\n    cgroups: [/a]\n", `line 5: cgroup "/a" is listed on line 3 already`},
		{"unit twice", "tiers:\n  system:\n    units: [a.service, a.service]\n", `unit "a.service" is listed on line 3 already`},
		{"key twice", "fallback: none\nfallback: none\n", "already defined at line 1"},
		{"no unit", "tiers:\n  system:\n    units: [a.timer]\n", `line 3: unit "a.timer"`},
		{"unit with a path", "tiers:\n  system:\n    units: [../a.service]\n", `line 3: unit "../a.service"`},
		{"not a list of names", "tiers:\n  system:\n    cgroups: [{a: b}]\n", "line 3: a name is expected"},
		{"null entry", "tiers:\n  system:\n    cgroups: [~]\n", "line 3: a name is expected"},
		{"no list", "tiers:\n  system:\n    cgroups: /a\n", "line 3: a list is expected here, as in [/a]"},
		{"fallback", "fallback: idle\n", `line 1: fallback "idle": use cpu.idle or none`},
		{"share", "systemShare: 0\n", "line 1: systemShare"},
		{"part of a share", "systemShare: 12.5\n", `line 1: systemShare "12.5": use a whole percentage`},
		{"reservation", "reservation: -1\n", "line 1: reservation \"-1\": use a number of CPUs"},
		{"no number", "reservation: .nan\n", "line 1: reservation"},
		{"fence", "fence: 3-2\n", `line 1: fence "3-2": use CPUs in one word`},
		{"fence as a list", "fence: [2]\n", `line 1: fence "[2]": use CPUs in one word`},
		{"fence as more than that", "fence:\n  a: [1, {b: 2, c: []}]\n  d: {}\n", `line 2: fence "{a: [1, {b: 2, c: []}], d: {}}": use CPUs in one word`},
		{"fence of a CPU too many", "fence: 0-512\n", "line 1: fence"},
		{"loans", "loans: often\n", `line 1: loans "often": use gaps, idle or never`},
		{"smt", "smt: both\n", `line 1: smt "both": use share or exclusive`},
		{"timeout", "heartbeatTimeout: 1s\n", "line 1: heartbeatTimeout"},
		{"no duration", "heartbeatTimeout: 10\n", "is not a duration"},
		{"limits", "limits: keep\n", `line 1: limits "keep": use paced, gap, freeze or ignore`},
		{"wrong type", "tiers: perhaps\n", "line 1"},
		{"no mapping", "- a\n", "line 1"},
		{"no YAML", "tiers: [\n", "line "},
		{"two documents", "fallback: none\n---\nfallback: none\n", "one YAML document"},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestLoadStatus(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "temper.yaml")
	if err := os.WriteFile(bad, []byte("colour: red\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, filepath.Join(t.TempDir(), "missing")} {
		_, err := Load(path)
		if exit.StatusOf(err) != exit.Config || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: status %d, %v", path, exit.StatusOf(err), err)
		}
	}
}

// A reservation of 0 is one: critical shares from the start. Without the key it always comes first.
func TestNoReservationIsNotOneOfNothing(t *testing.T) {
	for text, want := range map[string]*int64{"reservation: 0\n": new(int64(0)), "": nil} {
		cfg, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := cfg.Reservation; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: reservation %v, want %v", text, got, want)
		}
	}
}
