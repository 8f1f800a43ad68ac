package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/plan"
)

// Progress is how far a ladder has come.
type Progress struct {
	Stage       string // what goes on now
	Done, Total int    // windows
	Left        time.Duration
	Window      *plan.Window // the one that has just ended, or nil
}

// shuffle returns the plan with its arms in the order that its seed gives, so that no arm always
// runs on the machine that another has just left.
func shuffle(p plan.Plan) plan.Plan {
	p.Arms = shuffled(p.Arms, p.Seed)
	return p
}

func shuffled(arms []string, seed int64) []string {
	arms = slices.Clone(arms)
	slices.Sort(arms) // the order is the seed's alone, however the arms were asked for
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	r.Shuffle(len(arms), func(i, j int) { arms[i], arms[j] = arms[j], arms[i] })
	return arms
}

// Ladder gets a machine ready and runs one plan on it.
func Ladder(ctx context.Context, o Options, p plan.Plan, progress func(Progress)) (bench.Record, error) {
	if o.Notify == nil {
		o.Notify = func(what string) { progress(Progress{Stage: what}) }
	}
	l, err := Open(ctx, o, p.Arms)
	if err != nil {
		return bench.Record{}, err
	}
	return l.Ladder(ctx, p, progress)
}

// Ladder runs a plan, its arms shuffled, in one boot of the deterministic machine.
func (l *Lab) Ladder(ctx context.Context, p plan.Plan, progress func(Progress)) (bench.Record, error) {
	return l.ladder(ctx, p, progress, func(plan.Event) {})
}

// ladder hands each event to see, too.
func (l *Lab) ladder(ctx context.Context, p plan.Plan, progress func(Progress), see func(plan.Event)) (bench.Record, error) {
	p = shuffle(p)
	size, err := machine.ForLadder(p.CPUs)
	if err != nil {
		return bench.Record{}, err
	}
	run := &ladderRun{plan: p, eta: newEstimate(size.HostFactor(), p), progress: progress, record: bench.Record{
		Schema: bench.Schema, Scenario: p.Scenario, Load: p.Load, Bursty: p.Bursty, Seed: p.Seed, CPUs: p.CPUs, Seconds: p.Seconds, WarmUp: p.WarmUp,
		Machine: size.Record(l.emulator, p.Quantum), Hashes: l.Hashes,
	}}
	if w := p.Workload; w != nil && w.Background != nil {
		run.record.Spinner = w.Background.Spinner()
	}
	run.report("booting "+l.Kernel.Release, nil)
	err = l.bootSteady(ctx, size, "plan.json", p, run.eta.deadline(), func(e plan.Event) error {
		see(e)
		return run.handle(e)
	})
	return run.record, err
}

// ladderRun turns events into a record.
type ladderRun struct {
	plan     plan.Plan
	record   bench.Record
	windows  int
	eta      *estimate
	progress func(Progress)
}

func (r *ladderRun) total() int { return len(r.plan.Arms) * len(r.plan.Steps) }

func (r *ladderRun) report(stage string, w *plan.Window) {
	r.progress(Progress{Stage: stage, Done: r.windows, Total: r.total(), Left: r.eta.left(time.Now(), r.windows), Window: w})
}

func (r *ladderRun) handle(e plan.Event) error {
	switch {
	case e.Kind == "ready" && e.Ready != nil:
		r.record.Kernel = e.Ready.Kernel
		r.record.SaturationRPS, r.record.RateRPS = e.Ready.SaturationRPS, e.Ready.RateRPS
		r.record.CPURates, r.record.CPURatesAlone = e.Ready.CPURates, e.Ready.CPURatesAlone
		r.record.Machine.PreemptionMS = e.Ready.PreemptionMS
		r.eta.ready(time.Now())
		r.report("measuring", nil)
	case e.Kind == "window" && e.Window != nil:
		if err := r.addWindow(e.Window); err != nil {
			return err
		}
		r.report("measuring", e.Window)
	case e.Kind == "done":
		if r.windows != r.total() {
			return fmt.Errorf("the guest is done after %d windows of %d", r.windows, r.total())
		}
	}
	return nil
}

// addWindow expects the windows in the plan's order; the same arm may come twice (stock against stock).
func (r *ladderRun) addWindow(w *plan.Window) error {
	if r.windows == r.total() {
		return fmt.Errorf("the guest sent more than %d windows", r.total())
	}
	arm, step := r.windows/len(r.plan.Steps), r.windows%len(r.plan.Steps)
	if w.Arm != r.plan.Arms[arm] || w.Step.Background != r.plan.Steps[step] {
		return fmt.Errorf("window %d is %s at %d, not %s at %d",
			r.windows, w.Arm, w.Step.Background, r.plan.Arms[arm], r.plan.Steps[step])
	}
	if step == 0 {
		r.record.Arms = append(r.record.Arms, bench.Arm{Arm: w.Arm, Preempt: w.Preempt})
	}
	r.record.Arms[arm].Steps = append(r.record.Arms[arm].Steps, w.Step)
	r.windows++
	return nil
}
