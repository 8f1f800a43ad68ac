// Package config reads the agent's configuration, strictly: what it does not know, it refuses.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/utils/cpuset"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/tier"
)

// DefaultPath is where the agent looks without --config.
const DefaultPath = "/etc/temper/temper.yaml"

// What the agent does where scx_temper cannot be attached.
const (
	FallbackIdle = "cpu.idle"
	FallbackNone = "none"
)

// When background may run on a CPU of the fence.
const (
	LoansGaps  = "gaps"  // at any moment, given back by an interrupt
	LoansIdle  = "idle"  // while no critical task is runnable
	LoansNever = "never" // not at all
)

// What becomes of a task whose cgroup has used up its cpu.max.
const (
	LimitsPaced  = "paced"  // it waits for a few milliseconds
	LimitsGap    = "gap"    // it may use what nobody wants
	LimitsFreeze = "freeze" // it waits for the next period
	LimitsIgnore = "ignore" // nothing
)

// PodLimits are the modes that a cgroup may have of its own, whatever the node's is.
var PodLimits = []string{LimitsPaced, LimitsGap, LimitsFreeze}

// Whether background may run beside a thread of the same core that runs critical work.
const (
	SMTShare     = "share"
	SMTExclusive = "exclusive"
)

// Config is a valid configuration.
type Config struct {
	Cgroups          map[string]tier.Tier // by path in the cgroup tree
	Units            map[string]tier.Tier // by name of the systemd unit
	Limits           string
	HeartbeatTimeout time.Duration // 0: a scheduler without a loader stays for ever
	SystemShare      int           // per cent of the node that the system tier is sure of
	Reservation      *int64        // thousandths of a CPU up to which critical comes first; nil: however much it uses
	Fence            cpuset.CPUSet // whole cores set aside for critical
	Loans            string        // when background may run there
	SMT              string
	Fallback         string
}

// Load reads a file; every failure has status exit.Config.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.New(exit.Config, "write that file, or name one with --config", "cannot read the configuration: %w", err)
	}
	cfg, err := Parse(data)
	if err != nil {
		return nil, exit.New(exit.Config, "correct it; configuration.md, in docs/reference or /usr/share/doc/temper, has every key", "%s: %w", path, err)
	}
	return cfg, nil
}

// Parse reads a configuration; errors name the line.
func Parse(data []byte) (*Config, error) {
	f := file{HeartbeatTimeout: duration{value: 10 * time.Second}, SystemShare: share{value: 20},
		Loans: loans{LoansGaps}, Limits: limits{LimitsPaced}, SMT: smt{SMTShare}, Fallback: fallback{FallbackIdle}}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	// A file without content (io.EOF) is a configuration: nothing has a tier of its own.
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, plain(err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("one YAML document is expected, and there is more")
	}
	cfg := &Config{
		Cgroups: map[string]tier.Tier{}, Units: map[string]tier.Tier{},
		Limits: f.Limits.value, HeartbeatTimeout: f.HeartbeatTimeout.value,
		SystemShare: f.SystemShare.value, Reservation: f.Reservation.value,
		Fence: f.Fence.value, Loans: f.Loans.value, SMT: f.SMT.value, Fallback: f.Fallback.value,
	}
	seen := map[string]int{}
	for t, members := range f.Tiers.byTier() {
		for _, entry := range members.Cgroups {
			if err := add(cfg.Cgroups, seen, "cgroup", entry, tier.Tier(t), cgroup.ValidPath); err != nil {
				return nil, err
			}
		}
		for _, entry := range members.Units {
			if err := add(cfg.Units, seen, "unit", entry, tier.Tier(t), validUnit); err != nil {
				return nil, err
			}
		}
	}
	return cfg, nil
}

func add(to map[string]tier.Tier, seen map[string]int, kind string, e entry, t tier.Tier, valid func(string) error) error {
	if err := valid(e.text); err != nil {
		return fmt.Errorf("line %d: %w", e.line, err)
	}
	if line, ok := seen[e.text]; ok {
		return fmt.Errorf("line %d: %s %q is listed on line %d already", max(e.line, line), kind, e.text, min(e.line, line))
	}
	seen[e.text] = e.line
	to[e.text] = t
	return nil
}

var unitName = regexp.MustCompile(`^[A-Za-z0-9:_.\\@-]+\.(service|slice|scope)$`)

func validUnit(name string) error {
	if !unitName.MatchString(name) {
		return fmt.Errorf("unit %q: only NAME.service, NAME.slice and NAME.scope have a cgroup", name)
	}
	return nil
}

var unknownField = regexp.MustCompile(`^line (\d+): field (.*) not found in type config\.(\w+)$`)

// plain says yaml's error in words that need no knowledge of this package's types.
func plain(err error) error {
	typeError, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var lines []string
	for _, line := range typeError.Errors {
		if m := unknownField.FindStringSubmatch(line); m != nil {
			line = fmt.Sprintf("line %s: unknown %s %q: use %s", m[1], nouns[m[3]], m[2], known[m[3]])
		}
		lines = append(lines, line)
	}
	return errors.New(strings.Join(lines, "; "))
}
