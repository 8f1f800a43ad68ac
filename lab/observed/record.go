// Package observed is the record of what the outside observer saw while a ladder ran: whether background ran where
// critical work waited, and what it had of the CPU time that was left.
package observed

import (
	"fmt"
	"io"
	"text/tabwriter"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/node/observe"
	"temper.dev/temper/lab/plan"
)

// Record is one ladder that was watched. Watching costs each context switch about a microsecond of a real CPU, so
// its latencies are not kept.
type Record struct {
	Scenario string        `json:"scenario"`
	Load     float64       `json:"load,omitempty"` // fraction of saturation; 0 where the rate is fixed
	Bursty   bool          `json:"bursty,omitempty"`
	Kernel   string        `json:"kernel"`
	Seed     int64         `json:"seed"`
	CPUs     int           `json:"cpus"`
	Seconds  float64       `json:"seconds"` // watched in each window, guest time
	Machine  bench.Machine `json:"machine"`
	Hashes   bench.Hashes  `json:"hashes"`
	// PreemptingWakeUS is what a wake-up that interrupts a spinner takes, median, under the best stock setting: what
	// the lengths of violations are held against.
	PreemptingWakeUS float64 `json:"preempting_wake_us"`
	Arms             []Arm   `json:"arms"`
}

// Arm is what was seen under one arm.
type Arm struct {
	Arm     string `json:"arm"`
	Preempt string `json:"preempt"`
	Steps   []Step `json:"steps"`
}

// Step is one window.
type Step struct {
	Background int `json:"background"` // spinners
	observe.Report
}

// New starts the record of a ladder.
func New(ladder bench.Record, preemptingWakeMS float64) Record {
	return Record{
		Scenario: ladder.Scenario, Load: ladder.Load, Bursty: ladder.Bursty, Kernel: ladder.Kernel, Seed: ladder.Seed, CPUs: ladder.CPUs,
		Seconds: ladder.Seconds, Machine: ladder.Machine, Hashes: ladder.Hashes, PreemptingWakeUS: preemptingWakeMS * 1000,
	}
}

// Add adds a window.
func (r *Record) Add(w plan.Window) {
	if n := len(r.Arms); n == 0 || r.Arms[n-1].Arm != w.Arm {
		r.Arms = append(r.Arms, Arm{Arm: w.Arm, Preempt: w.Preempt})
	}
	arm := &r.Arms[len(r.Arms)-1]
	arm.Steps = append(arm.Steps, Step{w.Step.Background, *w.Observed})
}

// Write shows a record to a person.
func Write(w io.Writer, r Record) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "arm\tspinners\ttimes\tp50 us\tp99.9 us\tlongest us\t% of critical\tbeyond %\tharvest %\t")
	for _, arm := range r.Arms {
		for _, s := range arm.Steps {
			fmt.Fprintf(out, "%s\t%d\t%d\t%.0f\t%.0f\t%.0f\t%.3f\t%.3f\t%s\t\n",
				arm.Arm, s.Background, s.Violations, s.P50US, s.P999US, s.MaxUS, 100*s.Overlap(), 100*s.Excess(), harvest(s))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `
Background ran where critical work waited: how often, how long each time, and in all, over the CPU time of critical
work; beyond: what lies beyond the %.0f us that a wake-up takes here which interrupts background (median, best stock
setting). Harvest: background's CPU time over that and what idled while a background task waited that could have had it.
`, r.PreemptingWakeUS)
	return err
}

func harvest(s Step) string {
	if s.Background == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", 100*s.Harvest())
}
