// Package tier names the four tiers. Their numbers are those of enum temper_tier in sched/intf.h.
package tier

import (
	"fmt"
	"strings"
)

// Tier is how urgent a cgroup's work is; a smaller number goes first.
type Tier uint32

// The tiers, in the order in which they are served.
const (
	System     Tier = 0
	Critical   Tier = 1
	Standard   Tier = 2
	Background Tier = 3
)

// Count is the number of tiers.
const Count = 4

// All lists the tiers in order.
var All = [Count]Tier{System, Critical, Standard, Background}

var names = [Count]string{"system", "critical", "standard", "background"}

func (t Tier) String() string {
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("tier(%d)", uint32(t))
}

// MarshalText makes a tier its name in JSON.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a tier's name.
func (t *Tier) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	*t = parsed
	return err
}

// Parse finds a tier by its name.
func Parse(name string) (Tier, error) {
	for i, n := range names {
		if n == name {
			return Tier(i), nil
		}
	}
	return 0, fmt.Errorf("unknown tier %q: the tiers are %s", name, strings.Join(names[:], ", "))
}
