package run

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/image"
	"temper.dev/temper/lab/limits"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/plan"
)

// CheckLimits refuses what would fail in the guest.
func CheckLimits(p plan.Limits) error {
	usage := func(cure, format string, args ...any) error { return exit.New(exit.Usage, cure, format, args...) }
	if findLimited(p.Service) == nil {
		return usage("choose from "+strings.Join(limitedNames(), ", "), "no service %q", p.Service)
	}
	for _, name := range p.Arms {
		if _, ok := plan.FindLimitArm(name); !ok {
			return usage("choose from "+strings.Join(limitArmNames(), ", "), "no arm %q", name)
		}
	}
	for _, step := range p.Steps {
		if step < 0 {
			return usage("", "a step is a number of background spinners, not %d", step)
		}
	}
	switch {
	case len(p.Arms) == 0:
		return usage("choose from "+strings.Join(limitArmNames(), ", "), "no arms")
	case len(p.Steps) == 0:
		return usage("", "no steps")
	case p.Clients < 1:
		return usage("", "it takes one client or more, not %d", p.Clients)
	case p.Limit < 0.01 || p.Limit > float64(p.CPUs):
		return usage("", "the limit is 0.01 CPUs to the %d that there are, not %g", p.CPUs, p.Limit)
	case p.Load <= 0 || p.Load > 1:
		return usage("", "load is a fraction of what the limit lets through, above 0 and up to 1, not %v", p.Load)
	case p.Service == plan.MariaDB && (p.Seconds != math.Trunc(p.Seconds) || p.WarmUp != math.Trunc(p.WarmUp)):
		return usage("", "sysbench counts whole seconds: windows of %g s after %g s are not", p.Seconds, p.WarmUp)
	case p.Seconds < 1.1 || p.WarmUp <= 0:
		return usage("", "a window is longer than ten periods, 1.1 s or more, and the warm-up longer than nothing")
	}
	_, err := machine.ForLadder(p.CPUs)
	return err
}

func findLimited(name string) *limitedService {
	i := slices.IndexFunc(LimitedServices, func(s limitedService) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &LimitedServices[i]
}

func limitedNames() (names []string) {
	for _, s := range LimitedServices {
		names = append(names, s.Name)
	}
	return names
}

func limitArmNames() (names []string) {
	for _, a := range plan.LimitArms {
		names = append(names, a.Name)
	}
	return names
}

// Limits holds a service to a limit under each arm, in one boot of the deterministic machine.
func Limits(ctx context.Context, o Options, p plan.Limits, progress func(Progress)) (limits.Record, error) {
	p.Arms = shuffled(p.Arms, p.Seed)
	o.Notify = func(what string) { progress(Progress{Stage: what}) }
	l, err := openLimits(ctx, o, p)
	if err != nil {
		return limits.Record{}, err
	}
	size, err := machine.ForLadder(p.CPUs)
	if err != nil {
		return limits.Record{}, err
	}
	total := 2 * len(p.Arms) * len(p.Steps)
	run := &limitsRun{total: total, progress: progress,
		eta: newEstimate(size.HostFactor(), plan.Plan{WarmUp: p.Seconds, Seconds: p.WarmUp + p.Seconds, Arms: p.Arms, Steps: make([]int, 2*len(p.Steps))}),
		record: limits.Record{
			Service: p.Service, Kernel: l.Kernel.Release, Seed: p.Seed, CPUs: p.CPUs, Limit: p.Limit, Clients: p.Clients, Load: p.Load,
			Seconds: p.Seconds, WarmUp: p.WarmUp, Machine: size.Record(l.emulator, p.Quantum), Hashes: l.Hashes,
		}}
	run.report("booting " + l.Kernel.Release)
	err = l.bootSteady(ctx, size, "limits.json", p, run.eta.deadline(), run.handle)
	if err == nil && run.done != total {
		err = fmt.Errorf("the guest is done after %d windows of %d", run.done, total)
	}
	return run.record, err
}

// limitsRun turns events into a record.
type limitsRun struct {
	record      limits.Record
	done, total int // windows
	eta         *estimate
	progress    func(Progress)
}

func (r *limitsRun) report(stage string) {
	r.progress(Progress{Stage: stage, Done: r.done, Total: r.total, Left: r.eta.left(time.Now(), r.done)})
}

func (r *limitsRun) handle(e plan.Event) error {
	switch {
	case e.Kind == "ready" && e.Ready != nil:
		r.record.RateRPS = e.Ready.RateRPS
		r.eta.ready(time.Now())
	case e.Kind == "limit" && e.Limit != nil:
		r.record.Add(*e.Limit)
		r.done++
	default:
		return nil
	}
	r.report("measuring")
	return nil
}

// openLimits gets a machine ready that has the service.
func openLimits(ctx context.Context, o Options, p plan.Limits) (*Lab, error) {
	var arms []string
	for _, name := range p.Arms {
		arm, _ := plan.FindLimitArm(name)
		arms = append(arms, arm.Under)
	}
	return open(ctx, o, arms, func(ctx context.Context, l *Lab, notify func(string)) (image.Archive, error) {
		files, err := findLimited(p.Service).files(ctx, l, notify)
		a := image.Archive{}
		for guest, host := range files {
			a.Program(guest, host)
		}
		return a, err
	})
}
