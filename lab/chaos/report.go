// Package chaos does to a node what its users do on their worst day, all at once, and checks that the
// scheduler's promises hold: nobody is lost, nobody starves, background never runs on while others
// wait, and the kernel has nothing to complain about. It runs in a guest of the lab, as root.
package chaos

import (
	"cmp"
	"slices"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/node/observe"
)

// Record is an attack, or a soak: what was asked for, and what each seed has shown.
type Record struct {
	Kernel      string       `json:"kernel"`       // release
	CPUs        int          `json:"cpus"`         // virtual ones
	Fast        bool         `json:"fast"`         // in the host's time
	Operations  int          `json:"operations"`   // asked for, a seed; 0 in a soak
	SoakSeconds float64      `json:"soak_seconds"` // 0 in an attack
	Hashes      bench.Hashes `json:"hashes"`
	Seeds       []Report     `json:"seeds"` // ascending
}

// Report is what one seed has shown.
type Report struct {
	Seed       int64          `json:"seed"`
	Seconds    float64        `json:"seconds"`    // of guest time that the attack took
	Operations map[string]int `json:"operations"` // done, by name
	Refused    map[string]int `json:"refused"`    // of them, refused by the kernel: the task had gone, the CPU set was empty
	Workers    int            `json:"workers"`    // started
	// StalledMS is the longest time that a worker of a cgroup wanted to go on and did not, in ms: that it did no round; in a
	// soak, where a round of background takes many turns, that it had no turn.
	StalledMS map[string]float64 `json:"stalled_ms"`
	Observed  []observe.Report   `json:"observed"` // in calm moments, from outside; on the deterministic machine
	// BackgroundUser is the share of the node that background had in user mode during a soak, 0 to 1.
	BackgroundUser float64 `json:"background_user,omitempty"`
	LostGuests     int     `json:"lost_guests,omitempty"` // that the emulator lost before this one, by a fault of its own
	// Violations of a promise, one line each; none is what is hoped for.
	Violations []string `json:"violations"`
}

// LongestStall is the longest in StalledMS.
func (r Report) LongestStall() float64 {
	longest := 0.0
	for _, ms := range r.StalledMS {
		longest = max(longest, ms)
	}
	return longest
}

// LongestOverrun is the longest time in us that the observer saw background run while others waited.
func (r Report) LongestOverrun() float64 {
	longest := 0.0
	for _, o := range r.Observed {
		longest = max(longest, o.MaxUS)
	}
	return longest
}

// Total is how many operations were done.
func (r Report) Total() int {
	total := 0
	for _, n := range r.Operations {
		total += n
	}
	return total
}

// Add takes a seed's report in, at its place.
func (r *Record) Add(report Report) {
	r.Seeds = append(r.Seeds, report)
	slices.SortStableFunc(r.Seeds, func(a, b Report) int { return cmp.Compare(a.Seed, b.Seed) })
}

// Has tells whether a seed is recorded.
func (r Record) Has(seed int64) bool {
	return slices.ContainsFunc(r.Seeds, func(s Report) bool { return s.Seed == seed })
}

// Differs names what sets another record's attack apart from this one's, or is "".
func (r Record) Differs(other Record) string {
	switch {
	case r.Kernel != other.Kernel || r.Hashes != other.Hashes:
		return "kernel, emulator, guest or scheduler"
	case r.CPUs != other.CPUs || r.Fast != other.Fast:
		return "machine"
	case r.Operations != other.Operations || r.SoakSeconds != other.SoakSeconds:
		return "operations or length"
	}
	return ""
}

// Broken lists the seeds with violations.
func (r Record) Broken() (seeds []int64) {
	for _, s := range r.Seeds {
		if len(s.Violations) > 0 {
			seeds = append(seeds, s.Seed)
		}
	}
	return seeds
}
