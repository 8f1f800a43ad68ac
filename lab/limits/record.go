// Package limits is the record of a service that was held to a CPU limit under several arms.
package limits

import (
	"fmt"
	"io"
	"text/tabwriter"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

// Record is one boot of the lab.
type Record struct {
	Service string        `json:"service"`
	Kernel  string        `json:"kernel"`
	Seed    int64         `json:"seed"`
	CPUs    int           `json:"cpus"`
	Limit   float64       `json:"limit_cpus"`
	Clients int           `json:"clients"`
	Load    float64       `json:"load"` // of the open loop, over what the stock kernel's limit lets through
	RateRPS float64       `json:"rate_rps"`
	Seconds float64       `json:"seconds"` // of a window, guest time
	WarmUp  float64       `json:"warm_up_seconds"`
	Machine bench.Machine `json:"machine"`
	Hashes  bench.Hashes  `json:"hashes"`
	Arms    []Arm         `json:"arms"`
}

// Arm is one arm's figures, the worst of its steps, and the steps.
type Arm struct {
	Arm string `json:"arm"`
	Figures
	Steps []Step `json:"steps"`
}

// Figures are of one step, or of all of an arm's: then each is the worst.
type Figures struct {
	QuotaUseMean float64 `json:"quota_use_mean"` // CPU time used in a period, in quotas, when as much is asked as is answered
	QuotaUseMax  float64 `json:"quota_use_max"`  // the most in any ten periods in a row, however much is asked
	TPS          float64 `json:"tps"`            // requests a guest second, closed loop
	P50          float64 `json:"p50_ms"`         // open loop, from when a request was due, guest time
	P95          float64 `json:"p95_ms"`
	P99          float64 `json:"p99_ms"`
	Valid        bool    `json:"valid"`
}

// Step is one number of background spinners.
type Step struct {
	Background int `json:"background"`
	Figures
	Closed plan.LimitWindow `json:"closed"`
	Open   plan.LimitWindow `json:"open"`
}

// Add adds a window: the closed loop of a step comes before its open one.
func (r *Record) Add(w plan.LimitWindow) {
	if n := len(r.Arms); n == 0 || r.Arms[n-1].Arm != w.Arm {
		r.Arms = append(r.Arms, Arm{Arm: w.Arm})
	}
	arm := &r.Arms[len(r.Arms)-1]
	if w.OfferedRPS == 0 {
		arm.Steps = append(arm.Steps, Step{Background: w.Background, Closed: w})
		return
	}
	step := &arm.Steps[len(arm.Steps)-1]
	step.Open = w
	step.Figures = Figures{
		QuotaUseMean: step.Closed.QuotaUseMean, QuotaUseMax: max(step.Closed.QuotaUseMax, w.QuotaUseMax),
		TPS: step.Closed.RPS, P50: w.P50, P95: w.P95, P99: w.P99, Valid: step.Closed.Valid && w.Valid,
	}
	arm.Figures = worst(arm.Steps)
}

func worst(steps []Step) Figures {
	f := steps[0].Figures
	for _, s := range steps[1:] {
		f.QuotaUseMean = min(f.QuotaUseMean, s.QuotaUseMean)
		f.QuotaUseMax = max(f.QuotaUseMax, s.QuotaUseMax)
		f.TPS = min(f.TPS, s.TPS)
		f.P50, f.P95, f.P99 = max(f.P50, s.P50), max(f.P95, s.P95), max(f.P99, s.P99)
		f.Valid = f.Valid && s.Valid
	}
	return f
}

// step returns an arm's step, and whether there is one.
func (r Record) step(arm string, background int) (Step, bool) {
	for _, a := range r.Arms {
		for _, s := range a.Steps {
			if a.Arm == arm && s.Background == background {
				return s, true
			}
		}
	}
	return Step{}, false
}

// inOrder is the arms as LimitArms has them: they ran in the order that the seed gave.
func (r Record) inOrder() (arms []Arm) {
	for _, known := range plan.LimitArms {
		for _, a := range r.Arms {
			if a.Arm == known.Name {
				arms = append(arms, a)
			}
		}
	}
	return arms
}

// Write shows a record to a person, each figure with how many times the stock kernel's at the same step it is.
func Write(w io.Writer, r Record) error {
	fmt.Fprintf(w, "%s, limit %g of %d CPUs, %d clients: kernel %s, lab machine, seed %d, windows of %g s, latencies in ms of guest time\n",
		r.Service, r.Limit, r.CPUs, r.Clients, r.Kernel, r.Seed, r.Seconds)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "\t\t\t\tfull load\t\t\t\t\t\tsteady load\t\t\t\t\t")
	fmt.Fprintln(out, "arm\tbg\tuse\tmost\ttps\tover stock\tp95\tover stock\tp99\tover stock\tp50\tp95\tover stock\tp99\tover stock\t")
	arms := r.inOrder()
	for _, a := range arms {
		for _, s := range a.Steps {
			stock, ok := r.step("stock", s.Background)
			over := func(own, stock float64) string {
				if !ok || stock == 0 {
					return fmt.Sprintf("%.3g\t–", own)
				}
				return fmt.Sprintf("%.3g\t%.2f", own, own/stock)
			}
			fmt.Fprintf(out, "%s\t%d\t%.3f\t%.3f\t%s\t%s\t%s\t%.3g\t%s\t%s\t\n", a.Arm, s.Background, s.QuotaUseMean, s.QuotaUseMax,
				over(s.TPS, stock.TPS), over(s.Closed.P95, stock.Closed.P95), over(s.Closed.P99, stock.Closed.P99),
				s.P50, over(s.P95, stock.P95), over(s.P99, stock.P99))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, a := range arms {
		for _, s := range a.Steps {
			for _, window := range []plan.LimitWindow{s.Closed, s.Open} {
				if !window.Valid {
					fmt.Fprintf(w, "does not count: %s, %d spinners: %s\n", a.Arm, s.Background, window.InvalidReason)
				}
			}
		}
	}
	if _, err := fmt.Fprintf(w, `bg: background spinners. use: CPU time in a period, in quotas, at full load; most: in any ten periods in a row, at either.
full load: each client sends its next request when it has the answer to the last; tps: answers a second. steady load:
%.0f requests a second are due, %g of what the stock kernel's limit lets through; latencies from when each was due.
`, r.RateRPS, r.Load); err != nil {
		return err
	}
	return writeBars(w, r)
}
