// Package nodetop shows what the tiers and pods of nodes use, and how they wait, from look to look.
package nodetop

import "time"

// Round is one look at all nodes.
type Round struct {
	Time  time.Time `json:"time"`
	Error string    `json:"error,omitempty"` // why the nodes are those of the round before
	Nodes []Look    `json:"nodes"`           // by name
}

// Look is what was seen of a node.
type Look struct {
	Node     string    `json:"node"`
	Time     time.Time `json:"time"`                 // of the figures
	Live     bool      `json:"live"`                 // the agent was asked; else it is what it reported last
	WhyNot   string    `json:"not_live,omitempty"`   // why it was not
	Rung     string    `json:"rung"`                 //
	Enforced string    `json:"enforced"`             // as kubectl temper status says it
	Tiers    []Tier    `json:"tiers"`                // from the highest
	Pods     []Pod     `json:"pods"`                 // by name
	Why      string    `json:"reason,omitempty"`     // of a node's own look at itself: why tiers are not enforced
	Problems []string  `json:"problems,omitempty"`   // the same: what 'temper status' has
	Overrun  *Times    `json:"gap_overrun,omitzero"` // background ran on while a higher tier waited for its CPU
	LoanBack *Times    `json:"loan_back,omitzero"`   // background ran on in the fence after a loan had ended
}

// Tier is one on a node. Its CPU time is the scheduler's figure; where none of Temper's is attached, that of its pods.
type Tier struct {
	Tier string `json:"tier"`
	Pods int    `json:"pods"`
	CPU  *Count `json:"cpu_seconds,omitzero"` // null: nobody counts it
	Wait *Times `json:"wait,omitzero"`        // for a CPU
}

// Pod is a pod in a tier, or of a node's own look at itself any cgroup that has one.
type Pod struct {
	Name    string `json:"name"` // namespace/name, or the cgroup
	Tier    string `json:"tier"`
	CPU     *Count `json:"cpu_seconds,omitzero"`
	Waiting *Count `json:"waiting_seconds,omitzero"` // in which some task of it waited for a CPU
}

// Count is a figure that grows.
type Count struct {
	Total float64  `json:"total"`
	Rate  *float64 `json:"per_second,omitempty"` // since the look before
}

// Times are how long something took, each time: since the look before if there is a rate, else since the scheduler was attached.
type Times struct {
	Count uint64   `json:"count,omitzero"` // since the scheduler was attached
	Rate  *float64 `json:"per_second,omitempty"`
	P50US uint64   `json:"p50_us"` // at most: the upper edge of a bucket that is a power of two
	P99US uint64   `json:"p99_us"`

	buckets []bucket // empty: percentiles are what a report says
}

// bucket is how many were at most so long. The last has no edge.
type bucket struct {
	edge  float64 // in seconds
	below uint64
}

// percentile is the edge that p per cent lie below, in microseconds; 0 without values. Where the last bucket has it, twice
// the edge below stands for its own, as in 'temper status'.
func percentile(buckets []bucket, p float64) uint64 {
	if len(buckets) == 0 || buckets[len(buckets)-1].below == 0 {
		return 0
	}
	last := len(buckets) - 1
	for _, b := range buckets[:last] {
		if float64(b.below) >= p/100*float64(buckets[last].below) && b.below > 0 {
			return microseconds(b.edge)
		}
	}
	if last == 0 {
		return 0
	}
	return microseconds(2 * buckets[last-1].edge)
}

func microseconds(seconds float64) uint64 { return uint64(seconds*1e6 + 0.5) }
