package report

import (
	"fmt"
	"slices"
	"strings"

	"temper.dev/temper/internal/evidence/bench"
)

// replay is the command that measures the pool's seed again.
func replay(p *bench.Pooled, run bench.Run) string {
	c := p.Conditions
	if !bench.IsScenario(c.Scenario) {
		return fmt.Sprintf("temper-lab bench run FILE --kernel %s # FILE describes %s, with seed %d", c.Kernel, c.Scenario, run.Seed)
	}
	arms := slices.Clone(run.Order)
	for i, label := range arms {
		arms[i], _, _ = strings.Cut(label, " #") // the second of equal arms is asked for by the same name
	}
	slices.Sort(arms)
	var steps []string
	for _, cell := range p.Arms[0].Cells {
		steps = append(steps, fmt.Sprint(cell.Background))
	}
	words := []string{
		"temper-lab ladder", c.Scenario, "--arms", strings.Join(arms, ","), "--steps", strings.Join(steps, ","),
		fmt.Sprintf("--cpus %d --seconds %g --seed %d --kernel %s", c.CPUs, c.Seconds, run.Seed, c.Kernel),
	}
	if c.WarmUp > 0 {
		words = append(words, fmt.Sprintf("--warm-up %g", c.WarmUp))
	}
	if c.Load > 0 {
		words = append(words, fmt.Sprintf("--load %g", c.Load))
	}
	if c.Bursty {
		words = append(words, "--bursty")
	}
	if c.Machine.QuantumUS > 0 {
		words = append(words, fmt.Sprintf("--quantum %d", c.Machine.QuantumUS))
	}
	return strings.Join(append(words, fmt.Sprintf("--json seed%d.json", run.Seed)), " ")
}
