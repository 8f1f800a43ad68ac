package ladder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"

	"temper.dev/temper/lab/plan"
)

// limited is a service that is held to a limit. It runs from before the first arm to the last.
type limited interface {
	// start brings the service up, in the critical cgroup, on the application CPUs.
	start(context.Context, *ladder) error
	// ask offers a rate, or with rate 0, closed loop, as much as is answered.
	ask(context.Context, *ladder, asked) (answers, error)
}

// answers are the latencies of the requests that were due, or sent, in the measured part. The generators of databases end
// with their time, whatever is still due then.
type answers struct {
	*hdrhistogram.Histogram
	lacks string // why some that were due are not in it, or ""
}

// asked is what a service is asked for.
type asked struct {
	clients         int
	rate            float64
	warmUp, seconds float64
	seed            int64
}

func newLimited(service string) (limited, error) {
	switch service {
	case plan.GoService:
		return goService{}, nil
	case plan.JVM:
		return jvm{}, nil
	case plan.MariaDB:
		return mariadb{}, nil
	case plan.Postgres:
		return postgres{}, nil
	}
	return nil, fmt.Errorf("no service %q", service)
}

// limits is a plan of limits under way.
type limits struct {
	ladder
	plan    plan.Limits
	service limited
	rate    float64 // of open loops, requests a second
}

// RunLimits holds a service to a limit under each arm, and emits an event for each window.
func RunLimits(ctx context.Context, site Site, p plan.Limits, emit func(plan.Event) error) (err error) {
	// As in Run.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := limits{ladder: ladder{Plan: plan.Plan{CPUs: p.CPUs, Seed: p.Seed}, Site: site, emit: emit}, plan: p}
	ready, err := l.bringUp(ctx)
	if err != nil {
		return err
	}
	if err := emit(plan.Event{Kind: "ready", Ready: ready}); err != nil {
		return err
	}
	for _, name := range p.Arms {
		if err := l.runArm(ctx, name); err != nil {
			return fmt.Errorf("arm %s: %w", name, err)
		}
	}
	return emit(plan.Event{Kind: "done"})
}

// bringUp starts the service, and finds out what the kernel's own limit lets through.
func (l *limits) bringUp(ctx context.Context) (*plan.Ready, error) {
	if err := l.makeCgroups(); err != nil {
		return nil, err
	}
	ready := &plan.Ready{}
	var err error
	if l.Steady {
		if ready.CPURatesAlone, ready.CPURates, err = l.checkSteady(ctx); err != nil {
			return nil, err
		}
	}
	if l.service, err = newLimited(l.plan.Service); err != nil {
		return nil, err
	}
	if err := l.service.start(ctx, &l.ladder); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.plan.Service, err)
	}
	stock, _ := plan.FindLimitArm("stock")
	leave, err := l.enter(ctx, stock)
	if err != nil {
		return nil, err
	}
	answers, err := l.service.ask(ctx, &l.ladder, l.asked(0))
	if err := errors.Join(err, leave()); err != nil {
		return nil, err
	}
	ready.SaturationRPS = float64(answers.TotalCount()) / l.plan.Seconds
	ready.RateRPS = math.Round(l.plan.Load * ready.SaturationRPS) // sysbench takes whole rates
	l.rate = ready.RateRPS
	if l.rate == 0 {
		return nil, fmt.Errorf("%s has answered nothing", l.plan.Service)
	}
	return ready, nil
}

func (l *limits) asked(rate float64) asked {
	return asked{l.plan.Clients, rate, l.plan.WarmUp, l.plan.Seconds, l.plan.Seed * 1000}
}

// enter sets the limit, and then what schedules: a limit must be there when a scheduler comes, and when it goes.
func (l *limits) enter(ctx context.Context, arm plan.LimitArm) (leave func() error, err error) {
	if err := l.setLimit(arm); err != nil {
		return nil, err
	}
	under, ok := plan.FindArm(arm.Under)
	if !ok {
		return nil, fmt.Errorf("no arm %s to run under", arm.Under)
	}
	l.options = arm.Options
	_, leaveArm, err := l.enterArm(ctx, under)
	return func() error { return errors.Join(leaveArm(), l.setLimit(plan.LimitArm{})) }, err
}

func (l *limits) setLimit(arm plan.LimitArm) error {
	quota, burst, period := "max", 0, cmp.Or(arm.Period, plan.LimitPeriod)
	if arm.Limited {
		us := int(l.plan.Limit * float64(period.Microseconds()))
		quota = strconv.Itoa(us)
		if arm.Burst {
			burst = us
		}
	}
	// A burst beyond the quota is refused, so it is cleared first.
	for _, set := range []struct{ file, value string }{
		{"critical/cpu.max.burst", "0"},
		{"critical/cpu.max", fmt.Sprintf("%s %d", quota, period.Microseconds())},
		{"critical/cpu.max.burst", strconv.Itoa(burst)},
	} {
		if err := writeFile(l.cgroup(set.file), set.value); err != nil {
			return err
		}
	}
	return nil
}

func (l *limits) runArm(ctx context.Context, name string) (err error) {
	arm, ok := plan.FindLimitArm(name)
	if !ok {
		return fmt.Errorf("no such arm")
	}
	leave, err := l.enter(ctx, arm)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, leave()) }()
	for _, background := range l.plan.Steps {
		for _, rate := range []float64{0, l.rate} {
			w, err := l.window(ctx, arm, background, rate)
			if err != nil {
				return fmt.Errorf("step %d: %w", background, err)
			}
			if err := l.emit(plan.Event{Kind: "limit", Limit: w}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *limits) window(ctx context.Context, arm plan.LimitArm, background int, rate float64) (*plan.LimitWindow, error) {
	_, stop, err := l.startBackground(ctx, spinner, background, l.CPUs)
	if err != nil {
		return nil, err
	}
	defer stop()
	before, err := readAttachment()
	if err != nil {
		return nil, err
	}
	used := l.sampleUse(l.plan.WarmUp, l.plan.Seconds)
	answers, err := l.service.ask(ctx, &l.ladder, l.asked(rate))
	use, useErr := used()
	if err := errors.Join(err, useErr); err != nil {
		return nil, err
	}
	after, err := readAttachment()
	if err != nil {
		return nil, err
	}
	quota := l.plan.Limit * plan.LimitPeriod.Seconds()
	w := &plan.LimitWindow{
		Arm: arm.Name, Background: background, OfferedRPS: rate, Scheduler: after.ops,
		Requests: int(answers.TotalCount()), RPS: float64(answers.TotalCount()) / l.plan.Seconds,
		QuotaUseMean: use.mean(quota), QuotaUseMax: use.most(quota, 10),
	}
	ms := func(quantile float64) float64 { return float64(answers.ValueAtQuantile(quantile)) / 1e6 }
	w.P50, w.P95, w.P99, w.Max = ms(50), ms(95), ms(99), float64(answers.Max())/1e6
	under, _ := plan.FindArm(arm.Under)
	w.InvalidReason = cmp.Or(notThroughout(under, before, after), answers.lacks)
	if w.InvalidReason == "" && w.Requests == 0 {
		w.InvalidReason = "no request was answered"
	}
	w.Valid = w.InvalidReason == ""
	return w, nil
}
