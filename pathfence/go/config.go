package pathfence

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"temper.dev/temper/pathfence/go/core"
)

// Config is how a fence is to be. Zero means the default; ../spec/algorithm.md#configuration has bounds.
type Config struct {
	// Service is this service's name, the same in all of its replicas, by which it sees that a chain of calls comes back to it
	// through others. Empty: it does not see that.
	Service string
	// Workers is how many requests may be served at once. A goroutine costs nothing that runs out: take what the service can
	// do at once, such as the size of its smallest connection pool, or where its throughput stops to rise. Required.
	Workers int
	// Target is for how long a client waits for an answer: the deadline of requests that bring none. What waits longer is refused,
	// and a path whose requests take longer is limited. Take what your clients wait, and more than the slowest path takes in
	// good times; a class may have its own. 1 s.
	Target time.Duration
	// Classes are paths that have a share of the workers of their own from the start. Others are learned.
	Classes []Class
	// Off starts with the fence switched off.
	Off bool
	// OnDecision is told what came of each request, such as pathfenceprom's Waits.Observe: by the goroutine that asked, which goes
	// on when it returns, and has its permit by then. It must not ask the fence for another. nil: nobody is told.
	OnDecision func(Decision)

	// The rest is seldom set.

	Window         time.Duration // over which is measured: 100 ms
	Grace          time.Duration // nothing is refused as late before it has waited for so long: 20 ms
	GammaPermille  int           // how many thousandths of a request's usual time have to be left when it is granted: 3000
	QueueMax       int           // the most requests of a class that wait, fewer where they could not be in time: 8192
	Stall          time.Duration // 20 ms
	Panic          time.Duration // 50 ms
	UnknownBuckets int           // for keys that are not known yet: 8

	without core.Parts // for benchmarks, in a file
}

// Class is one that is named.
type Class struct {
	Name   string
	Keys   []string      // of the paths in it, such as KeyOf("GET /orders/{id}")
	Weight int           // its share of the workers, of a default of 100
	Target time.Duration // that of Config

	// A profile, as `pathfence profile` measures it.

	Limit int           // where its limit starts; 0: where the core has it start
	Hold  time.Duration // what a request is expected to take; 0: that is not known
}

const validNames = "1 to 64 of a-z A-Z 0-9 . _ / : + - ~"

// checkNames says what is wrong with a name.
func (c Config) checkNames() error {
	if c.Service != "" && !core.ValidName(c.Service) {
		return fmt.Errorf("pathfence.Config: Service is %q; it must be %s", c.Service, validNames)
	}
	if err := c.checkKeys(); err != nil {
		return fmt.Errorf("pathfence.Config: %w", err)
	}
	return nil
}

// checkKeys knows what the core does not: what a key that is none was meant to be.
func (c Config) checkKeys() error {
	for _, class := range c.Classes {
		for _, key := range class.Keys {
			if !core.ValidName(key) {
				return fmt.Errorf("class %s: the key %q must be %s; KeyOf gives that of a pattern, here %q", class.Name, key, validNames, KeyOf(key))
			}
		}
	}
	return nil
}

// fields are those of Config by their names in JSON.
var fields = map[string]string{
	"workers": "Workers", "window_ns": "Window", "target_ns": "Target", "grace_ns": "Grace", "gamma_permille": "GammaPermille", "queue_max": "QueueMax",
	"stall_ns": "Stall", "panic_ns": "Panic", "unknown_buckets": "UnknownBuckets", "classes": "the number of Classes", "weight": "Weight",
	"limit": "Limit", "hold_ns": "Hold",
}

// inGo says what the core has against a configuration in the words of Config.
func inGo(err error) error {
	var bounds *core.BoundsError
	if !errors.As(err, &bounds) {
		if err != nil {
			err = fmt.Errorf("pathfence.Config: %w", err)
		}
		return err
	}
	of := strings.TrimSuffix(err.Error(), bounds.Error()) // such as the class
	if strings.HasSuffix(bounds.Name, "_ns") {
		return fmt.Errorf("pathfence.Config: %s%s is %v; it must be %v to %v", of, fields[bounds.Name], time.Duration(bounds.Is), time.Duration(bounds.Least), time.Duration(bounds.Most))
	}
	return fmt.Errorf("pathfence.Config: %s%s is %d; it must be %d to %d", of, fields[bounds.Name], bounds.Is, bounds.Least, bounds.Most)
}

func (c Config) core() core.Config {
	out := core.Config{
		Workers: int64(c.Workers), Window: int64(c.Window), Target: int64(cmp.Or(c.Target, defaultTarget)), Grace: int64(c.Grace), Gamma: int64(c.GammaPermille),
		Queue: int64(c.QueueMax), Stall: int64(c.Stall), Panic: int64(c.Panic), Buckets: int64(c.UnknownBuckets), Off: c.Off, Unbounded: true,
		Without: c.without,
	}
	for _, class := range c.Classes {
		out.Classes = append(out.Classes, core.ClassConfig{
			Name: class.Name, Keys: class.Keys, Weight: int64(class.Weight), Target: int64(class.Target), Limit: int64(class.Limit), Hold: int64(class.Hold),
		})
	}
	return out
}

const (
	defaultWindow = 100 * time.Millisecond
	defaultTarget = time.Second
)

// tick is how often the fence has to look at its clock.
func (c Config) tick() time.Duration {
	if c.Window == 0 {
		return defaultWindow / 4
	}
	return c.Window / 4
}
