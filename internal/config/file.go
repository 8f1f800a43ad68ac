package config

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"temper.dev/temper/internal/tier"
)

// file is the configuration as written.
type file struct {
	Tiers            tiers    `yaml:"tiers"`
	IgnoreLimits     bool     `yaml:"ignoreLimits"`
	HeartbeatTimeout duration `yaml:"heartbeatTimeout"`
	SystemShare      share    `yaml:"systemShare"`
	Reservation      cpus     `yaml:"reservation"`
	Fallback         fallback `yaml:"fallback"`
}

type tiers struct {
	System     members `yaml:"system"`
	Critical   members `yaml:"critical"`
	Standard   members `yaml:"standard"`
	Background members `yaml:"background"`
}

type members struct {
	Cgroups entries `yaml:"cgroups"`
	Units   entries `yaml:"units"`
}

// nouns and known put yaml's word about an unknown field of these types into the operator's words.
var (
	nouns = map[string]string{"file": "key", "tiers": "tier", "members": "key"}
	known = map[string]string{
		"file":    "tiers, ignoreLimits, heartbeatTimeout, systemShare, reservation or fallback",
		"tiers":   "system, critical, standard or background",
		"members": "cgroups or units",
	}
)

func (t tiers) byTier() [tier.Count]members {
	return [tier.Count]members{t.System, t.Critical, t.Standard, t.Background}
}

// entries are names that know their lines. A list without members may be left empty.
type entries []entry

type entry struct {
	text string
	line int
}

func (list *entries) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.SequenceNode {
		return fmt.Errorf("line %d: a list is expected here, as in [%s]", node.Line, node.Value)
	}
	for _, item := range node.Content {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return fmt.Errorf("line %d: a name is expected here", item.Line)
		}
		*list = append(*list, entry{item.Value, item.Line})
	}
	return nil
}

type duration struct{ value time.Duration }

func (d *duration) UnmarshalYAML(node *yaml.Node) error {
	value, err := time.ParseDuration(node.Value)
	if err != nil {
		return fmt.Errorf("line %d: heartbeatTimeout %q is not a duration such as 10s", node.Line, node.Value)
	}
	if value != 0 && (value < 2*time.Second || value > time.Hour || value%time.Second != 0) {
		return fmt.Errorf("line %d: heartbeatTimeout %q: use whole seconds from 2s to 1h, or 0 for never", node.Line, node.Value)
	}
	d.value = value
	return nil
}

type share struct{ value int }

func (s *share) UnmarshalYAML(node *yaml.Node) error {
	if err := node.Decode(&s.value); err != nil || s.value < 1 || s.value > 100 {
		return fmt.Errorf("line %d: systemShare %q: use a percentage from 1 to 100", node.Line, node.Value)
	}
	return nil
}

type cpus struct{ value float64 }

func (c *cpus) UnmarshalYAML(node *yaml.Node) error {
	// Written so that what is not a number (.nan) is refused, too.
	if err := node.Decode(&c.value); err != nil || !(c.value >= 0.001 && c.value <= 512) {
		return fmt.Errorf("line %d: reservation %q: use a number of CPUs such as 2.5", node.Line, node.Value)
	}
	return nil
}

type fallback struct{ value string }

func (f *fallback) UnmarshalYAML(node *yaml.Node) error {
	f.value = node.Value
	if f.value != FallbackIdle && f.value != FallbackNone {
		return fmt.Errorf("line %d: fallback %q: use %s", node.Line, node.Value, strings.Join([]string{FallbackIdle, FallbackNone}, " or "))
	}
	return nil
}
