package engine

import "testing"

// The figures are those of kube-scheduler's documentation and of its own test (TestNumFeasibleNodesToFind).
func TestEnoughNodes(t *testing.T) {
	for all, want := range map[int]int{0: 0, 10: 10, 100: 100, 150: 100, 1000: 420, 6000: 300, 10000: 500} {
		if got := enoughNodes(all); got != want {
			t.Errorf("of %d nodes %d are enough, want %d", all, got, want)
		}
	}
}
