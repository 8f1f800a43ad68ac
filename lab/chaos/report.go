// Package chaos does to a node what its users do on their worst day, all at once, and checks that the
// scheduler's promises hold: nobody is lost, nobody starves, background never runs on while others
// wait, and the kernel has nothing to complain about. It runs in a guest of the lab, as root.
package chaos

import "temper.dev/temper/internal/observe"

// Report is what one seed has shown.
type Report struct {
	Seed       int64          `json:"seed"`
	Kernel     string         `json:"kernel"` // release
	CPUs       int            `json:"cpus"`
	Seconds    float64        `json:"seconds"`    // of guest time that the attack took
	Operations map[string]int `json:"operations"` // done, by name
	Refused    map[string]int `json:"refused"`    // of them, refused by the kernel: the task had gone, the CPU set was empty
	Workers    int            `json:"workers"`    // started
	// StalledMS is the longest time that a worker of a cgroup wanted to go on and did not, in ms.
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
