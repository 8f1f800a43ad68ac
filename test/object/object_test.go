//go:build object

// Package object tests the scheduler's BPF object as it was compiled: build/temper.bpf.o.
package object

import (
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// unordered return nothing, and are no barrier on arm64.
var unordered = []asm.AtomicOp{asm.AddAtomic, asm.AndAtomic, asm.OrAtomic, asm.XorAtomic}

// An atomic operation without a barrier is one that its source calls relaxed.
func TestAtomicsThatOrderNothingAreCalledRelaxed(t *testing.T) {
	spec, err := ebpf.LoadCollectionSpec("../../build/temper.bpf.o")
	if err != nil {
		t.Fatal("make sched builds it: ", err)
	}
	ordered, relaxed := 0, 0
	seen := map[string]bool{}
	for name, program := range spec.Programs {
		line := ""
		for i, ins := range program.Instructions {
			if source := ins.Source(); source != nil {
				line = source.String()
			}
			op := ins.OpCode.AtomicOp()
			if op == asm.InvalidAtomic {
				continue
			}
			if !slices.Contains(unordered, op) {
				ordered++
				continue
			}
			relaxed++
			if !strings.Contains(line, "relaxed_add") && !seen[line] {
				seen[line] = true
				t.Errorf("%s, instruction %d: %v has no barrier, and its source line is\n\t%s", name, i, ins, strings.TrimSpace(line))
			}
		}
	}
	t.Logf("%d are ordered, %d relaxed", ordered, relaxed)
	if ordered < 20 || relaxed == 0 {
		t.Error("the object has more than that")
	}
}
