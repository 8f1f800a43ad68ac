// Package bench is the evidence: records of ladders, what they add up to, and how they are shown.
package bench

// Schema names the layout of Record.
const Schema = "temper.dev/record/v1"

// Record is one ladder on one machine with one seed. It holds nothing that two equal runs would
// not share (no dates, no host names): equal inputs give an equal file.
type Record struct {
	Schema   string  `json:"schema"`
	Scenario string  `json:"scenario"`       // "chain", "memcached" or "web", or the name of a user's workload
	Load     float64 `json:"load,omitempty"` // fraction of saturation; 0 where the rate is fixed
	Bursty   bool    `json:"bursty,omitempty"`
	Kernel   string  `json:"kernel"` // uname -r
	Seed     int64   `json:"seed"`
	CPUs     int     `json:"cpus"`                      // application CPUs; the load generator has its own
	Seconds  float64 `json:"seconds"`                   // length of a window, guest time
	WarmUp   float64 `json:"warm_up_seconds,omitempty"` // load before the first window, thrown away
	// Spinner is what a user's workload runs as a background worker, in place of a spinner; absent where those are spinners.
	Spinner       Spinner `json:"spinner,omitzero"`
	SaturationRPS float64 `json:"saturation_rps,omitempty"`
	RateRPS       float64 `json:"rate_rps"`
	// CPURates is how many iterations a second each application CPU computes while all do, measured before the
	// ladder, and CPURatesAlone while the others idle; absent where that was not measured.
	CPURates      []float64 `json:"cpu_rates,omitempty"`
	CPURatesAlone []float64 `json:"cpu_rates_alone,omitempty"`
	Machine       Machine   `json:"machine"`
	Hashes        Hashes    `json:"hashes"`
	Arms          []Arm     `json:"arms"` // in the order they ran
}

// Spinner is a command that runs over and over.
type Spinner struct {
	Command string `json:"command"`
	Unit    string `json:"unit"` // of its work: "runs", "lines", or the text before a counter that it prints
}

// Machine is what ran the ladder.
type Machine struct {
	Kind       string  `json:"kind"`                   // "lab" or "native"
	MIPSPerCPU float64 `json:"mips_per_cpu,omitempty"` // lab: million instructions a guest second and CPU
	QuantumUS  int     `json:"quantum_us,omitempty"`   // lab: time in which every virtual CPU has a turn
	Emulator   string  `json:"emulator,omitempty"`     // lab: version
	// PreemptionMS is what one interruption of background work by the service costs the service, in ms, measured
	// before the ladder; 0 where it was not measured.
	PreemptionMS float64 `json:"preemption_ms,omitempty"`
}

// Hashes are SHA-256, in hex, of what the figures depend on.
type Hashes struct {
	Kernel   string `json:"kernel,omitempty"`
	Emulator string `json:"emulator,omitempty"`
	Guest    string `json:"guest,omitempty"`
	BPF      string `json:"bpf,omitempty"`
}

// Arm is one way to schedule.
type Arm struct {
	Arm     string `json:"arm"`     // "eevdf", "cpuidle", "temper", ...
	Preempt string `json:"preempt"` // the kernel's preemption mode during the arm: "lazy", "full", ...
	Steps   []Step `json:"steps"`   // in the order they ran
}

// Step is one window. Latencies are in ms from the intended send time, in guest time in the lab.
type Step struct {
	Background int     `json:"background"` // spinners; web: workers that resize images; or the record's own
	P50        float64 `json:"p50_ms"`
	P90        float64 `json:"p90_ms"`
	P99        float64 `json:"p99_ms"`
	P999       float64 `json:"p999_ms"`
	Max        float64 `json:"max_ms"`
	Mean       float64 `json:"mean_ms"`
	Requests   int     `json:"requests"`   // answered
	Unanswered int     `json:"unanswered"` // sent, and not answered when the window closed
	// BackgroundWork is units (fixed iterations; web: rows of thumbnails; or the record's own) done by all spinners; BackgroundCores is their CPU time over the window's length.
	BackgroundWork  uint64  `json:"background_work"`
	BackgroundCores float64 `json:"background_cores"`
	ServiceCores    float64 `json:"service_cores"`
	IdleCores       float64 `json:"idle_cores"`
	// Histogram is the window's HDR histogram (V2, compressed, base64; values in ns), so that windows can be pooled.
	Histogram string `json:"histogram,omitempty"`
	// Scheduler is /sys/kernel/sched_ext's word over the window: "" (stock) or the name of the ops.
	Scheduler     string `json:"scheduler"`
	Valid         bool   `json:"valid"`
	InvalidReason string `json:"invalid_reason"`
}
