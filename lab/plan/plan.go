// Package plan is what the host tells the guest to run, and what the guest says back.
// Host and guest are built from the same commit, so neither side is versioned.
package plan

import (
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/node/observe"
)

// Scenarios that the lab runs.
const (
	Chain     = "chain"
	Memcached = "memcached"
	Web       = "web"
)

// DefaultQuantum is short, because a timer of the guest that expires makes the turns of one round
// uneven. It costs the host a tenth more time than 50 us.
const DefaultQuantum = 10

// Plan is one boot of the lab: a ladder under each arm, in order.
type Plan struct {
	Scenario string   `json:"scenario"`
	Arms     []string `json:"arms"`  // in the order to run, already shuffled by the seed
	Steps    []int    `json:"steps"` // background workers, in the order to run
	Seed     int64    `json:"seed"`
	CPUs     int      `json:"cpus"`              // application CPUs: 0..CPUs-1; the load generator has those from number CPUs on
	Seconds  float64  `json:"seconds"`           // guest seconds of a window
	WarmUp   float64  `json:"warm_up_seconds"`   // guest seconds of load before the first window, thrown away
	Load     float64  `json:"load"`              // memcached, web: fraction of measured saturation (web: 1 is a closed loop); chain: 0 (its rate is fixed per CPU)
	Bursty   bool     `json:"bursty"`            // the service idles 60 % of each 100 ms
	Quantum  int      `json:"quantum_us"`        // time in which every virtual CPU has a turn
	Observe  bool     `json:"observe,omitempty"` // windows are watched from outside, which costs their latencies something

	// Workload is the service, where it is the user's own; Scenario is then its name. It travels in the guest's image, whose
	// hash covers it.
	Workload *Workload `json:"-"`
}

// GeneratorCPUs is how many CPUs the load generator has beside so many application CPUs: with fewer, what is measured as
// memcached's saturation is the generator's. The other scenarios' generators use the first of them.
func GeneratorCPUs(application int) int {
	if application <= 4 {
		return 1
	}
	return application / 2
}

// Costs is a boot of the lab that counts what scheduling costs under each arm, on a machine that does nothing else.
type Costs struct {
	Arms    []string `json:"arms"`
	CPUs    int      `json:"cpus"`
	Rounds  int      `json:"rounds"` // of each operation in a batch; a figure is the median of some batches
	Quantum int      `json:"quantum_us"`
}

// Operation is one that Costs counts, with what a round of it is.
type Operation struct{ Name, Round string }

// Operations are all of them.
var Operations = []Operation{
	{"switch", "two threads on one CPU yield to each other: a switch"},
	{"pipe", "two threads on one CPU send a byte to and fro: a wake-up and a switch"},
	{"wake", "the same on two CPUs: a wake-up of an idle CPU"},
	{"preempt", "a wake-up on a CPU that runs background work, over one of an idle CPU"},
	{"messages", "groups of senders and receivers on all CPUs, as hackbench's: a message"},
	{"requests", "dispatchers and workers that compute, on all CPUs, as schbench's: a request"},
}

// Command is one command to run in the guest, instead of a ladder.
type Command struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env"` // added to the guest's own

	Quantum int `json:"quantum_us,omitempty"` // time in which every virtual CPU has a turn; 0: the machine needs none
}

// Event is one line from the guest on its data port, as JSON. Which field is set follows from Kind.
type Event struct {
	Kind   string  `json:"kind"` // "ready", "window", "cost", "limit", "done", "error", "log"
	Ready  *Ready  `json:"ready,omitempty"`
	Window *Window `json:"window,omitempty"`
	Cost   *Cost   `json:"cost,omitempty"`

	Limit *LimitWindow `json:"limit,omitempty"`
	Text  string       `json:"text,omitempty"` // of "error" and "log"
}

// Ready follows the warm-up.
type Ready struct {
	Kernel        string  `json:"kernel"`         // uname -r
	SaturationRPS float64 `json:"saturation_rps"` // 0 for chain
	RateRPS       float64 `json:"rate_rps"`       // requests a guest second that will be offered
	PreemptionMS  float64 `json:"preemption_ms"`  // what interrupting a spinner adds to a wake-up's p99

	PreemptingWakeMS float64 `json:"preempting_wake_ms"` // what a wake-up that interrupts a spinner takes, median

	// Iterations a guest second of each application CPU, all of them busy and one at a time; lab only.
	CPURates      []float64 `json:"cpu_rates,omitempty"`
	CPURatesAlone []float64 `json:"cpu_rates_alone,omitempty"`
}

// Window is one measured step of one arm.
type Window struct {
	Arm     string     `json:"arm"`
	Preempt string     `json:"preempt"`
	Step    bench.Step `json:"step"`

	Observed *observe.Report `json:"observed,omitempty"` // if the plan asks for it
}

// Cost is what one arm's operations take.
type Cost struct {
	Arm       string             `json:"arm"`
	Preempt   string             `json:"preempt"`
	Scheduler string             `json:"scheduler"` // attached; "": stock
	Nanos     map[string]float64 `json:"nanos"`     // guest time of a round, by operation
}
