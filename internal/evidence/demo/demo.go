// Package demo measures what Temper does to two services, and says it in a table, a sentence and a page.
package demo

import (
	"context"
	"slices"
	"sync"
	"time"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

// Names of the demo's arms.
const (
	stock     = "eevdf"   // as the kernel boots
	bestStock = "cpuidle" // the best stock setting
	temper    = "temper"
)

// Lengths of the windows in seconds: long enough for a p99 that ten requests decide, and such that
// both ladders take the lab about as long, seven minutes on free CPUs.
const (
	chainSeconds     = 15
	memcachedSeconds = 5
	warmUpSeconds    = 4
)

// Plans are the demo's ladders, their windows scaled.
func Plans(cpus int, scale float64, seed int64) []plan.Plan {
	chain := plan.Plan{
		Scenario: plan.Chain, Arms: []string{stock, bestStock, temper}, Steps: []int{0, 1, 2, 4, 8},
		Seed: seed, CPUs: cpus, Seconds: chainSeconds * scale, WarmUp: warmUpSeconds * scale, Quantum: plan.DefaultQuantum,
	}
	memcached := chain
	memcached.Scenario, memcached.Load, memcached.Seconds = plan.Memcached, 0.5, memcachedSeconds*scale
	return []plan.Plan{chain, memcached}
}

// Demo is one run of the ladders.
type Demo struct {
	Plans    []plan.Plan
	Measure  func(context.Context, plan.Plan, func(run.Progress)) (bench.Record, error)
	Parallel bool // measure all at once: each has a machine of its own
}

// Run measures every plan, one record each, or ends all at the first failure. It calls progress from
// several goroutines, but never from two at a time.
func (d Demo) Run(ctx context.Context, progress func(Progress)) ([]bench.Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	now := Progress{Ladders: make([]run.Progress, len(d.Plans)), parallel: d.Parallel}
	var mu sync.Mutex
	var first error // the one to report; later ones follow from it
	records := make([]bench.Record, len(d.Plans))
	measure := func(i int) {
		began := time.Now()
		r, err := d.Measure(ctx, d.Plans[i], func(p run.Progress) {
			mu.Lock()
			defer mu.Unlock()
			now.add(i, p, time.Since(began))
			progress(now.copy())
		})
		mu.Lock()
		defer mu.Unlock()
		if err != nil && first == nil {
			first = err
			cancel()
		}
		records[i] = r
	}
	var all sync.WaitGroup
	for i := range d.Plans {
		if d.Parallel {
			all.Go(func() { measure(i) })
		} else if ctx.Err() == nil {
			measure(i)
		}
	}
	all.Wait()
	return records, first
}

// Progress is how far the demo has come.
type Progress struct {
	Ladders []run.Progress // one for each plan
	Current int            // the plan that this news is of

	parallel bool
	elapsed  time.Duration // of the current plan
}

func (p *Progress) add(i int, now run.Progress, elapsed time.Duration) {
	p.Ladders[i], p.Current, p.elapsed = now, i, elapsed
}

func (p Progress) copy() Progress {
	p.Ladders = slices.Clone(p.Ladders)
	return p
}

// Left is about how long the demo still takes. A ladder that waits for its turn is taken to need as
// long as the current one.
func (p Progress) Left() time.Duration {
	var longest time.Duration
	for _, l := range p.Ladders {
		longest = max(longest, l.Left)
	}
	if p.parallel {
		return longest
	}
	left := p.Ladders[p.Current].Left
	waiting := len(p.Ladders) - 1 - p.Current
	return left + time.Duration(waiting)*(p.elapsed+left)
}
