package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

// Study is one plan under many seeds.
type Study struct {
	Plan  plan.Plan // its seed is not used
	Seeds []int64
	Out   string // folder for the records
	Jobs  int    // guests at a time
}

// Study runs what has no record yet, so that a study that was interrupted goes on where it was. It
// calls progress from several goroutines.
func (l *Lab) Study(ctx context.Context, s Study, progress func(seed int64, p Progress)) error {
	return s.run(ctx, l.Hashes, l.Ladder, progress)
}

// run has a machine, of these hashes, run a ladder for each seed that has no record.
func (s Study) run(ctx context.Context, hashes bench.Hashes, ladder runLadder, progress func(seed int64, p Progress)) error {
	if err := os.MkdirAll(s.Out, 0o755); err != nil {
		return err
	}
	missing, err := s.missingSeeds(hashes, progress)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seeds := make(chan int64, len(missing))
	for _, seed := range missing {
		seeds <- seed
	}
	close(seeds)
	var workers sync.WaitGroup
	for range min(s.Jobs, len(missing)) {
		workers.Go(func() {
			for seed := range seeds {
				if ctx.Err() != nil {
					return
				}
				if err := ladder.record(ctx, s.at(seed), s.Out, progress); err != nil {
					cancel(err) // the first failure is the one to report; later ones follow from it
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); errors.Is(err, context.Canceled) {
		return interrupted()
	} else if err != nil {
		return err
	}
	return nil
}

func interrupted() error {
	return exit.New(exit.Interrupted, "run the same command again; what has a record is not measured again", "interrupted")
}

func (s Study) at(seed int64) plan.Plan {
	s.Plan.Seed = seed
	return s.Plan
}

// runLadder runs one plan on some machine.
type runLadder func(context.Context, plan.Plan, func(Progress)) (bench.Record, error)

func (run runLadder) record(ctx context.Context, p plan.Plan, out string, progress func(int64, Progress)) error {
	r, err := run(ctx, p, func(x Progress) { progress(p.Seed, x) })
	if err != nil {
		return err
	}
	return bench.WriteJSON(filepath.Join(out, RecordName(p)), r)
}

// missingSeeds lists the seeds without a record, and refuses a folder with records of something
// else: pooled with those of this plan they would be neither.
func (s Study) missingSeeds(hashes bench.Hashes, progress func(int64, Progress)) ([]int64, error) {
	var missing []int64
	for _, seed := range s.Seeds {
		p := s.at(seed)
		path := filepath.Join(s.Out, RecordName(p))
		r, err := bench.ReadRecord(path)
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, seed)
			continue
		}
		if err != nil {
			return nil, err
		}
		if field := differs(r, p, hashes); field != "" {
			return nil, exit.New(exit.Usage, "remove it, or choose another folder", "%s is a record of another study: its %s differ", path, field)
		}
		windows := len(p.Arms) * len(p.Steps)
		progress(seed, Progress{Stage: "recorded earlier", Done: windows, Total: windows})
	}
	return missing, nil
}

// differs names what sets a record apart from one that a machine of these hashes would make of the plan, or is "".
func differs(r bench.Record, p plan.Plan, hashes bench.Hashes) string {
	p = shuffle(p)
	var arms []string
	sameSteps := true
	for _, a := range r.Arms {
		arms = append(arms, a.Arm)
		var steps []int
		for _, s := range a.Steps {
			steps = append(steps, s.Background)
		}
		sameSteps = sameSteps && reflect.DeepEqual(steps, p.Steps)
	}
	switch {
	case r.Hashes != hashes:
		return differingHashes(r.Hashes, hashes, p)
	case r.Scenario != p.Scenario || r.CPUs != p.CPUs || r.Load != p.Load || r.Bursty != p.Bursty || r.Seed != p.Seed:
		return "conditions (scenario, CPUs, load, bursty, seed)"
	case r.Seconds != p.Seconds || r.WarmUp != p.WarmUp || r.Machine.QuantumUS != p.Quantum:
		return "lengths of window, warm-up or quantum"
	case !reflect.DeepEqual(arms, p.Arms) || !sameSteps:
		return "arms or steps"
	}
	return ""
}

// differingHashes names what of two unequal sets of hashes differs.
func differingHashes(a, b bench.Hashes, p plan.Plan) string {
	guest := "guest"
	if p.Workload != nil {
		guest += " (a service, its files, the client or the rate)"
	}
	var names []string
	for _, h := range []struct{ name, a, b string }{
		{"kernel", a.Kernel, b.Kernel}, {"emulator", a.Emulator, b.Emulator}, {guest, a.Guest, b.Guest}, {"scheduler (BPF object)", a.BPF, b.BPF},
	} {
		if h.a != h.b {
			names = append(names, h.name)
		}
	}
	return "hashes of " + strings.Join(names, ", ")
}
