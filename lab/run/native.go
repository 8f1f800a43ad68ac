package run

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/image"
	"temper.dev/temper/lab/ladder"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/native"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/workload"
)

// Native runs plans on this host instead of a virtual machine. What it measures is real time, and
// noise: no two runs are equal.
type Native struct {
	host   native.Host
	hashes bench.Hashes
	files  image.Archive // what the ladder's programs see in place of this host's files; nil: these
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

// OpenNativeWorkload gets this host ready for a user's services, and says what to run on it. The services see the files that they
// would see in the lab's guest, so that one file describes both.
func OpenNativeWorkload(ctx context.Context, o Options, f *workload.File) (*Native, plan.Plan, error) {
	n, err := OpenNative("/", o.Assets)
	if err != nil {
		return nil, plan.Plan{}, err
	}
	c := o.Cache
	if c == "" {
		if c, err = cache.Default(); err != nil {
			return nil, plan.Plan{}, err
		}
	}
	built := n.host.Assets
	attached := map[string]string{}
	for _, name := range f.Arms {
		arm, _ := plan.FindArm(name)
		switch {
		case arm.Scheduler == plan.Temper:
			attached["bin/scx_temper"], err = built.File(assets.Scheduler)
		case len(arm.Command) > 0:
			err = exit.New(exit.Usage, "leave it out, or measure in the lab", "arm %s attaches a scheduler of others, for which there is no measurement on a host", name)
		}
		if err != nil {
			return nil, plan.Plan{}, err
		}
	}
	more, p, err := programsOf(ctx, c, built, f, o.notify)
	if err != nil {
		return nil, plan.Plan{}, err
	}
	p.Quantum = 0 // its CPUs run at once
	if n.files, err = guestFiles(ctx, c, built, attached, more, o.notify); err != nil {
		return nil, plan.Plan{}, err
	}
	packed, err := n.files.Pack()
	n.hashes.Guest = packed.Hash
	return n, p, err
}

// Study runs what has no record yet, one seed after the other.
func (n *Native) Study(ctx context.Context, s Study, progress func(seed int64, p Progress)) error {
	s.Jobs = 1
	return s.run(ctx, n.hashes, n.Ladder, progress)
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
	if w := p.Workload; w != nil && w.Background != nil {
		run.record.Spinner = w.Background.Spinner()
	}
	site, leave, err := n.host.Site()
	if err != nil {
		return record, err
	}
	defer site.Log.Close()
	run.report("calibrating", nil)
	ctx, cancel := context.WithCancel(ctx)
	measure := func() error { return ladder.Run(ctx, site, p, run.handle) }
	if n.files == nil {
		err = measure()
	} else {
		site.Env, site.Find = []string{"PATH=" + plan.ProgramFolders, "HOME=/"}, findInGuest
		err = native.Inside(n.files, measure)
	}
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

// findInGuest looks for a program where a guest has its own.
func findInGuest(program string) (string, error) {
	for folder := range strings.SplitSeq(plan.ProgramFolders, ":") {
		if at := filepath.Join(folder, program); host.Exists(at) {
			return at, nil
		}
	}
	return "", exit.New(exit.Failed, "", "the guest's files have no %s", program)
}
