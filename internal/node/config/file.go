package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/utils/cpuset"

	"temper.dev/temper/internal/base/tier"
)

// file is the configuration as written.
type file struct {
	Tiers            tiers    `yaml:"tiers"`
	Limits           limits   `yaml:"limits"`
	HeartbeatTimeout duration `yaml:"heartbeatTimeout"`
	SystemShare      share    `yaml:"systemShare"`
	Reservation      cpus     `yaml:"reservation"`
	Fence            fence    `yaml:"fence"`
	Loans            loans    `yaml:"loans"`
	SMT              smt      `yaml:"smt"`
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
		"file":    "tiers, limits, heartbeatTimeout, systemShare, reservation, fence, loans, smt or fallback",
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
	value, err := strconv.Atoi(node.Value)
	if err != nil || value < 1 || value > 100 {
		return fmt.Errorf("line %d: systemShare %q: use a whole percentage from 1 to 100", node.Line, text(node))
	}
	s.value = value
	return nil
}

type cpus struct{ value *int64 }

func (c *cpus) UnmarshalYAML(node *yaml.Node) error {
	// Written so that what is not a number (.nan) is refused, too.
	var cpus float64
	if err := node.Decode(&cpus); err != nil || !(cpus == 0 || cpus >= 0.001 && cpus <= MostCPUs) {
		return fmt.Errorf("line %d: reservation %q: use a number of CPUs such as 2.5; without the key critical always comes first", node.Line, text(node))
	}
	c.value = new(int64(math.Round(cpus * 1000)))
	return nil
}

// MostCPUs is how many scx_temper can schedule.
const MostCPUs = 512

type fence struct{ value cpuset.CPUSet }

func (f *fence) UnmarshalYAML(node *yaml.Node) (err error) {
	f.value, err = cpuset.Parse(node.Value)
	if list := f.value.List(); err != nil || len(list) == 0 || list[0] < 0 || list[len(list)-1] >= MostCPUs {
		return fmt.Errorf("line %d: fence %q: use CPUs in one word, such as 2-3,6-7", node.Line, text(node))
	}
	return nil
}

type (
	limits   struct{ value string }
	loans    struct{ value string }
	smt      struct{ value string }
	fallback struct{ value string }
)

func (l *limits) UnmarshalYAML(node *yaml.Node) (err error) {
	l.value, err = oneOf(node, "limits", LimitsPaced, LimitsGap, LimitsFreeze, LimitsIgnore)
	return err
}

func (l *loans) UnmarshalYAML(node *yaml.Node) (err error) {
	l.value, err = oneOf(node, "loans", LoansGaps, LoansIdle, LoansNever)
	return err
}

func (s *smt) UnmarshalYAML(node *yaml.Node) (err error) {
	s.value, err = oneOf(node, "smt", SMTShare, SMTExclusive)
	return err
}

func (f *fallback) UnmarshalYAML(node *yaml.Node) (err error) {
	f.value, err = oneOf(node, "fallback", FallbackIdle, FallbackNone)
	return err
}

// text is a value as written, also where it is a list or more keys: those in one line. Not by yaml.Marshal: what that links
// beside the parser, which is all that a node needs, is 0.1 MB.
func text(node *yaml.Node) string {
	var items []string
	switch node.Kind {
	case yaml.SequenceNode:
		for _, item := range node.Content {
			items = append(items, text(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			items = append(items, text(node.Content[i])+": "+text(node.Content[i+1]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return node.Value
}

func oneOf(node *yaml.Node, key string, words ...string) (string, error) {
	if last := len(words) - 1; !slices.Contains(words, node.Value) {
		return "", fmt.Errorf("line %d: %s %q: use %s", node.Line, key, text(node), strings.Join(words[:last], ", ")+" or "+words[last])
	}
	return node.Value, nil
}
