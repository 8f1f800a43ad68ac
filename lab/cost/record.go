// Package cost is the record of what scheduling costs, in instructions, under each arm.
package cost

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

// Record is one boot of the lab that counted costs.
type Record struct {
	Kernel  string        `json:"kernel"`
	CPUs    int           `json:"cpus"`
	Rounds  int           `json:"rounds"` // in a batch; a figure is the median of some batches
	Machine bench.Machine `json:"machine"`
	Hashes  bench.Hashes  `json:"hashes"`
	Arms    []Arm         `json:"arms"`
}

// Arm is one arm's figures.
type Arm struct {
	Arm          string             `json:"arm"`
	Preempt      string             `json:"preempt"`
	Scheduler    string             `json:"scheduler"`    // attached; "": stock
	Instructions map[string]float64 `json:"instructions"` // that a CPU executes in the time of a round, by operation
}

// Add converts what a guest has measured.
func (r *Record) Add(c plan.Cost) {
	arm := Arm{Arm: c.Arm, Preempt: c.Preempt, Scheduler: c.Scheduler, Instructions: map[string]float64{}}
	for operation, ns := range c.Nanos {
		arm.Instructions[operation] = ns * r.Machine.MIPSPerCPU / 1000
	}
	r.Arms = append(r.Arms, arm)
}

// counted are the operations that a record has: older ones have fewer.
func (r Record) counted() []plan.Operation {
	return slices.DeleteFunc(slices.Clone(plan.Operations), func(o plan.Operation) bool {
		_, ok := r.Arms[0].Instructions[o.Name]
		return !ok
	})
}

// Write shows a record to a person: each figure, and how many times the first arm's it is.
func Write(w io.Writer, r Record) error {
	operations := r.counted()
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "arm\t")
	for _, operation := range operations {
		fmt.Fprintf(out, "%s\t\t", operation.Name)
	}
	fmt.Fprintln(out)
	for _, arm := range r.Arms {
		fmt.Fprintf(out, "%s\t", arm.Arm)
		for _, operation := range operations {
			n, first := arm.Instructions[operation.Name], r.Arms[0].Instructions[operation.Name]
			fmt.Fprintf(out, "%.0f\t%.2f ×\t", n, n/first)
		}
		fmt.Fprintln(out)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nInstructions that a CPU executes in the time of a round, and how many times those of %s. Kernel %s, %d CPUs.\n", r.Arms[0].Arm, r.Kernel, r.CPUs)
	for _, operation := range operations {
		if _, err := fmt.Fprintf(w, "%-9s %s\n", operation.Name, operation.Round); err != nil {
			return err
		}
	}
	return nil
}
