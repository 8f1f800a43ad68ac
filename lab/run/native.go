package run

import (
	"context"
	"fmt"
	"runtime"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/ladder"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/native"
	"temper.dev/temper/lab/plan"
)

// Native runs plans on this host instead of a virtual machine. What it measures is real time, and
// noise: no two runs are equal.
type Native struct {
	host   native.Host
	hashes bench.Hashes
}

// OpenNative refuses a host that cannot run the ladder, before anything is changed on it.
func OpenNative(root host.Root, built assets.Folder) (*Native, error) {
	if built == "" {
		var err error
		if built, err = assets.Default(); err != nil {
			return nil, err
		}
	}
	n := &Native{host: native.Host{Root: root, Assets: built}}
	if err := n.host.Check(); err != nil {
		return nil, err
	}
	// The loader knows its object's hash, but the object may not be there where Temper was installed.
	if object, err := built.File(assets.BPFObject); err == nil {
		if n.hashes.BPF, err = hashFile(object); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Ladder runs a plan. When it returns, the host is as it was before.
func (n *Native) Ladder(ctx context.Context, p plan.Plan, progress func(Progress)) (record bench.Record, err error) {
	p = shuffle(p)
	if generator := plan.GeneratorCPUs(p.CPUs); p.CPUs+generator > runtime.NumCPU() {
		return record, exit.New(exit.Usage, "choose fewer with --cpus",
			"%d application CPUs and %d for the load generator are more than the %d of this host", p.CPUs, generator, runtime.NumCPU())
	}
	run := &ladderRun{plan: p, eta: newEstimate(1, p), progress: progress, record: bench.Record{
		Schema: bench.Schema, Scenario: p.Scenario, Load: p.Load, Bursty: p.Bursty, Seed: p.Seed, CPUs: p.CPUs,
		Seconds: p.Seconds, WarmUp: p.WarmUp, Machine: bench.Machine{Kind: "native"}, Hashes: n.hashes,
	}}
	site, leave, err := n.host.Site()
	if err != nil {
		return record, err
	}
	defer site.Log.Close()
	run.report("calibrating", nil)
	ctx, cancel := context.WithCancel(ctx)
	err = ladder.Run(ctx, site, p, run.handle)
	switch {
	case ctx.Err() != nil:
		err = exit.New(exit.Interrupted, "", "interrupted; the host is as it was before, and no record was written")
	case err != nil:
		err = fmt.Errorf("%w%s", err, machine.LastLines("its log", site.Log.Name(), 15))
	}
	cancel() // ends what still runs
	if leaveErr := leave(); leaveErr != nil {
		err = exit.New(exit.Failed, "", "the host is not as it was before: %w", leaveErr)
	}
	return run.record, err
}
