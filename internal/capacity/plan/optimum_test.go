package plan_test

import (
	"testing"

	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/sample"
)

// Where the best is known, because pods fill that many nodes to the last CPU, a plan keeps at most 2 per cent more.
func TestNearTheKnownOptimum(t *testing.T) {
	for seed := range uint64(3) {
		const nodes, best = 100, 50
		s, err := sample.Packed(seed, nodes, best)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p, err := plan.Make(t.Context(), s, plan.Options{Seed: seed})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		t.Logf("seed %d: %d pods on %d nodes -> %d, by %d moves and %d decisions; the best is %d, the bound says %d",
			seed, len(s.Pods), nodes, p.NodesAfter, p.Moves(), p.Decisions, best, p.AtLeast)
		if p.AtLeast != best {
			t.Errorf("seed %d: the bound is %d, want %d", seed, p.AtLeast, best)
		}
		if p.NodesAfter*100 > best*102 {
			t.Errorf("seed %d: %d nodes are left, more than 2 %% above %d", seed, p.NodesAfter, best)
		}
	}
}
