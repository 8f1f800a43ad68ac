// Package record is what the path plane's benchmark leaves behind: rows of what was measured, what they add up to, the
// table, and the bars that they are held against.
//
// record.go: the layout. resume.go: a record that was begun. measure.go: from requests to a row. paired.go: ratios within a
// repetition, and their medians. table.go, bars.go: what a person reads.
package record

import "slices"

// Schema names the layout of Record.
const Schema = "temper.dev/pathfence-bench/v1"

// The two paths. The innocent one has a downstream of its own that nothing happens to.
const (
	Innocent = "innocent"
	Slowed   = "slowed"
)

// PathName is what people read for a path: the innocent one is healthy.
func PathName(path string) string {
	if path == Innocent {
		return "healthy"
	}
	return path
}

// Arms that bars name.
const (
	Fence   = "fence"
	Learned = "fence with learned classes"
	Shared  = "shared pool"
)

// Arms that are no service, but what figures are held against.
const (
	Alone    = "alone"    // the innocent path with the shared pool to itself, undisturbed
	Capacity = "capacity" // the slowed path's downstream without a service before it, as many requests at a time as it has threads
)

// Disturbances that bars name.
const (
	None       = "none"
	Slow       = "slow tenfold"
	Freeze     = "frozen 400 of 500 ms"
	Surge      = "surge"
	Recovery   = "recovery" // what follows Slow
	Saturation = "saturation"

	// The cut of the social network: a front end, home and user timelines, post storage and two stores.
	Network       = "network" // undisturbed
	NetworkSlow   = "network, slow tenfold"
	NetworkFreeze = "network, frozen 400 of 500 ms"

	// The whole of it.
	Social       = "social network" // undisturbed
	SocialSlow   = "social network, slow tenfold"
	SocialFreeze = "social network, frozen 400 of 500 ms"

	// The shop in Spring Boot: a front end, catalogue, cart and orders.
	Shop       = "shop" // undisturbed
	ShopSlow   = "shop, slow tenfold"
	ShopFreeze = "shop, frozen 400 of 500 ms"

	// The media service, in C++ and Java.
	Media       = "media" // undisturbed
	MediaSlow   = "media, slow tenfold"
	MediaFreeze = "media, frozen 400 of 500 ms"
)

// Record is all runs of one seed, in the order in which they were done. It holds no date and no host's name.
type Record struct {
	Schema  string  `json:"schema"`
	Seed    uint64  `json:"seed"`
	Machine Machine `json:"machine"`
	Plan    any     `json:"plan"`
	// Instructions is how many the service executes for a request, by arm; absent where they were not counted.
	Instructions map[string]float64 `json:"instructions,omitempty"`
	Rows         []Row              `json:"rows"`
}

// Machine is what the runs were done on.
type Machine struct {
	Kernel string            `json:"kernel"` // uname -r
	CPUs   int               `json:"cpus"`
	Lab    bool              `json:"lab,omitempty"` // the deterministic one of 'temper-lab': time is executed instructions
	Hashes map[string]string `json:"hashes"`        // SHA-256 of the programs
}

// Row is what one path got from one arm while it was disturbed, or recovered; or several paths, added up.
type Row struct {
	Arm         string `json:"arm"`
	Disturbance string `json:"disturbance"`
	Path        string `json:"path"`
	Repetition  int    `json:"repetition"`
	Figures
	// Onset has the latencies of each 50 ms of the first 3 s, added up; a request that was shed or not answered counts
	// as the client's patience.
	Onset []float64 `json:"onset_ms,omitempty"`
	// Paths are the figures of each path, where the row has several.
	Paths         map[string]Figures `json:"paths,omitempty"`
	ForeignCPUs   float64            `json:"foreign_cpus"` // that others than the benchmark had
	LateMS        float64            `json:"late_ms"`      // p99 of how late requests were sent
	Valid         bool               `json:"valid"`
	InvalidReason string             `json:"invalid_reason,omitempty"`
}

// Figures are what became of requests.
type Figures struct {
	Offered  float64 `json:"offered_per_s"`
	Goodput  float64 `json:"goodput_per_s"` // answered within the target
	P50      float64 `json:"p50_ms"`        // from when requests were due, of all that were not shed; without an answer: the client's patience
	P99      float64 `json:"p99_ms"`
	Shed     int     `json:"shed"`     // refused
	Timeouts int     `json:"timeouts"` // neither refused nor answered within the target
}

// Regardless is the record with all rows counted as valid: for a look on a busy machine.
func (r Record) Regardless() Record {
	r.Rows = slices.Clone(r.Rows)
	for i := range r.Rows {
		r.Rows[i].Valid = true
	}
	return r
}
