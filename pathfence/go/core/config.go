package core

import (
	"fmt"
	"strings"
)

// Time is nanoseconds of a monotonic clock that the caller reads. The model never looks at a clock itself.
type Time = int64

const ms Time = 1_000_000

// Bounds of the configuration; see algorithm.md, "Configuration".
const (
	maxWorkers = 4096
	maxClasses = 32 // of a configuration
	maxNamed   = 64 // by this and earlier configurations
	maxLearned = 32
	maxBuckets = 32
)

// Parts switches single parts of the fence off, so that a benchmark can tell what each of them brings. The zero value
// is the whole fence.
type Parts struct {
	NoLend    bool `json:"no_lend,omitempty"`    // no class goes beyond its reserve
	NoProtect bool `json:"no_protect,omitempty"` // lending looks at nobody's usual demand
	NoShed    bool `json:"no_shed,omitempty"`    // only what has expired is shed, and what finds the queue full
	NoNewest  bool `json:"no_newest,omitempty"`  // a queue is served in order of arrival also under overload
	NoLearn   bool `json:"no_learn,omitempty"`   // limits stay where they start
	NoExcite  bool `json:"no_excite,omitempty"`  // no dips and no steps up to learn from
	NoPanic   bool `json:"no_panic,omitempty"`   // an unmet reserve and a stalled borrower have no consequence
}

// ClassConfig is a class that the operator names, or the profile of one.
type ClassConfig struct {
	Name   string   `json:"name"`
	Keys   []string `json:"keys,omitempty"`
	Weight int64    `json:"weight,omitempty"`    // 1..1000, of a default of 100
	Target Time     `json:"target_ns,omitempty"` // the deadline of requests that carry none
	Limit  int64    `json:"limit,omitempty"`     // where the limit starts: a profile's
	Hold   Time     `json:"hold_ns,omitempty"`   // what a request is expected to hold a worker for: a profile's
}

// Config is all that an operator can set. Zero means the default.
type Config struct {
	Workers int64         `json:"workers"`
	Window  Time          `json:"window_ns,omitempty"`
	Target  Time          `json:"target_ns,omitempty"`
	Grace   Time          `json:"grace_ns,omitempty"`
	Gamma   int64         `json:"gamma_permille,omitempty"`
	Queue   int64         `json:"queue_max,omitempty"`
	Stall   Time          `json:"stall_ns,omitempty"`
	Panic   Time          `json:"panic_ns,omitempty"`
	Buckets int64         `json:"unknown_buckets,omitempty"`
	Classes []ClassConfig `json:"classes,omitempty"`
	Off     bool          `json:"off,omitempty"`
	Without Parts         `json:"without,omitzero"`

	// Unbounded: off, nothing is bounded, since without the fence nothing would be: the workers are no threads, or a server's own
	// pool bounds them. It is whose fence it is that knows, not who configures it.
	Unbounded bool `json:"-"`
}

func orDefault(v *int64, d int64) {
	if *v == 0 {
		*v = d
	}
}

const longest = 600_000 * ms // a target, or a hold

// withDefaults fills what is not set, and refuses what is out of bounds.
func (c Config) withDefaults() (Config, error) {
	orDefault(&c.Window, 100*ms)
	orDefault(&c.Target, 1000*ms)
	orDefault(&c.Grace, 20*ms)
	orDefault(&c.Gamma, 3000)
	orDefault(&c.Queue, 8192)
	orDefault(&c.Stall, 20*ms)
	orDefault(&c.Panic, 50*ms)
	orDefault(&c.Buckets, 8)
	for _, b := range []struct {
		name         string
		v, low, high int64
	}{
		{"workers", c.Workers, 1, maxWorkers},
		{"window_ns", c.Window, ms, 1000 * ms},
		{"target_ns", c.Target, ms, longest},
		{"grace_ns", c.Grace, 0, 10_000 * ms},
		{"gamma_permille", c.Gamma, 0, 10_000},
		{"queue_max", c.Queue, 1, 1 << 20},
		{"stall_ns", c.Stall, ms, 60_000 * ms},
		{"panic_ns", c.Panic, ms, 60_000 * ms},
		{"unknown_buckets", c.Buckets, 1, maxBuckets},
		{"classes", int64(len(c.Classes)), 0, maxClasses},
	} {
		if b.v < b.low || b.v > b.high {
			return c, &BoundsError{b.name, b.v, b.low, b.high}
		}
	}
	return c, c.checkClasses()
}

// BoundsError says that a value is out of bounds.
type BoundsError struct {
	Name            string // as in JSON
	Is, Least, Most int64
}

func (e *BoundsError) Error() string {
	return fmt.Sprintf("%s is %d; it must be %d to %d", e.Name, e.Is, e.Least, e.Most)
}

func (c *Config) checkClasses() error {
	names, keys := map[string]bool{}, map[string]bool{}
	classes := append([]ClassConfig(nil), c.Classes...)
	for i := range classes {
		cc := &classes[i]
		orDefault(&cc.Weight, defaultWeight)
		orDefault(&cc.Target, c.Target)
		switch {
		case !ValidName(cc.Name) || strings.HasPrefix(cc.Name, "~"):
			return fmt.Errorf("class name %q is not valid: 1 to %d of a-z A-Z 0-9 . _ / : + - ~, and not ~ at the start", cc.Name, MaxName)
		case names[cc.Name]:
			return fmt.Errorf("class name %q is given twice", cc.Name)
		case cc.Weight < 1 || cc.Weight > 1000:
			return fmt.Errorf("class %s: %w", cc.Name, &BoundsError{"weight", cc.Weight, 1, 1000})
		case cc.Target < ms || cc.Target > longest:
			return fmt.Errorf("class %s: %w", cc.Name, &BoundsError{"target_ns", cc.Target, ms, longest})
		case cc.Limit < 0 || cc.Limit > maxWorkers:
			return fmt.Errorf("class %s: %w", cc.Name, &BoundsError{"limit", cc.Limit, 0, maxWorkers})
		case cc.Hold < 0 || cc.Hold > longest:
			return fmt.Errorf("class %s: %w", cc.Name, &BoundsError{"hold_ns", cc.Hold, 0, longest})
		}
		names[cc.Name] = true
		for _, k := range cc.Keys {
			if !ValidName(k) {
				return fmt.Errorf("class %s: key %q is not valid: 1 to %d of a-z A-Z 0-9 . _ / : + - ~", cc.Name, k, MaxName)
			}
			if keys[k] {
				return fmt.Errorf("class %s: key %q is given twice", cc.Name, k)
			}
			keys[k] = true
		}
	}
	c.Classes = classes
	return nil
}
