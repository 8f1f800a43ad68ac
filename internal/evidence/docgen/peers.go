package docgen

import (
	"fmt"
	"strings"

	"temper.dev/temper/internal/evidence/bench"
)

// Peers shows ladders beside the schedulers of others, and by how much the best of them is ahead or behind.
func Peers(dir string) (string, error) {
	s, err := Records(dir)
	if err != nil || s == nil {
		return "", err
	}
	var worst, tables strings.Builder
	for _, p := range s.Pools {
		arm, bg, ratio := worstOverPeers(p)
		fmt.Fprintf(&worst, "| %s | %.2f | %s, %s |\n", p.Plan(), ratio, arm, bench.Spinners(bg, 0))
		if err := p.WriteTable(&tables); err != nil {
			return "", err
		}
		tables.WriteString("\n")
	}
	return "# Beside the schedulers of others\n" + notice +
		"scx_lavd (`--performance`) and scx_layered (`lab/peers/layered.json`: the service in a layer that preempts all else, its threads served first where they have to queue) of `make peers`, and the best stock setting. " +
		"The highest of Temper's p99 over that of the better of scx_lavd and scx_layered, of all steps:\n\n" +
		"| plan | over the better | at |\n| --- | --- | --- |\n" + worst.String() + "\n" + fence(tables.String()), nil
}

// worstOverPeers is the step where Temper's p99 comes closest to that of the best of the others' schedulers, or is furthest
// beyond it.
func worstOverPeers(p *bench.Pooled) (arm string, background int, ratio float64) {
	for i := range p.Arms[0].Cells {
		ours, best, name := 0.0, 0.0, ""
		for _, a := range p.Arms {
			f := a.Cells[i].Figures
			switch {
			case f == nil:
			case bench.IsOurs(a.Label):
				ours = f.P99
			case !bench.IsStock(a.Label) && (name == "" || f.P99 < best):
				best, name = f.P99, a.Label
			}
		}
		if name != "" && ours/best > ratio {
			arm, background, ratio = name, p.Arms[0].Cells[i].Background, ours/best
		}
	}
	return arm, background, ratio
}
