package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/cost"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/plan"
)

// mostArmCost is how long the costs of an arm may take on a busy host.
const mostArmCost = 20 * time.Minute

// CheckCosts refuses what would fail in the guest.
func CheckCosts(p plan.Costs) error {
	for _, name := range p.Arms {
		arm, ok := plan.FindArm(name)
		if !ok {
			return exit.New(exit.Usage, "choose from "+strings.Join(armNames(), ", "), "no arm %q", name)
		}
		if arm.ServicePolicy != "" || arm.BackgroundPolicy != "" {
			return exit.New(exit.Usage, "leave it out", "the costs have neither service nor background work, whose policy arm %s changes", name)
		}
	}
	switch {
	case len(p.Arms) == 0:
		return exit.New(exit.Usage, "choose from "+strings.Join(armNames(), ", "), "no arms")
	case p.CPUs < 2:
		return exit.New(exit.Usage, "", "a wake-up of another CPU takes two")
	case p.Rounds < 1:
		return exit.New(exit.Usage, "", "a batch has one round or more, not %d", p.Rounds)
	}
	_, err := machine.Even(p.CPUs)
	return err
}

// Costs counts what scheduling costs under each arm, in one boot of the deterministic machine, and reports each arm.
func Costs(ctx context.Context, o Options, p plan.Costs, done func(arms int)) (cost.Record, error) {
	l, err := Open(ctx, o, p.Arms)
	if err != nil {
		return cost.Record{}, err
	}
	size, err := machine.Even(p.CPUs)
	if err != nil {
		return cost.Record{}, err
	}
	r := cost.Record{Kernel: l.Kernel.Release, CPUs: p.CPUs, Rounds: p.Rounds, Machine: size.Record(l.emulator, p.Quantum), Hashes: l.Hashes}
	err = l.bootSteady(ctx, size, "costs.json", p, time.Duration(len(p.Arms))*mostArmCost, func(e plan.Event) error {
		if e.Kind == "cost" && e.Cost != nil {
			r.Add(*e.Cost)
			done(len(r.Arms))
		}
		return nil
	})
	if err == nil && len(r.Arms) != len(p.Arms) {
		err = fmt.Errorf("the guest is done after %d arms of %d", len(r.Arms), len(p.Arms))
	}
	return r, err
}
