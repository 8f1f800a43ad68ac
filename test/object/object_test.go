//go:build object

// Package object tests the scheduler's BPF object as it was compiled: build/temper.bpf.o.
package object

import (
	"debug/elf"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// unordered return nothing, and are no barrier on arm64.
var unordered = []asm.AtomicOp{asm.AddAtomic, asm.AndAtomic, asm.OrAtomic, asm.XorAtomic}

// An atomic operation without a barrier is one that its source calls relaxed.
func TestAtomicsThatOrderNothingAreCalledRelaxed(t *testing.T) {
	ordered, relaxed := 0, 0
	seen := map[string]bool{}
	for section, instructions := range programs(t) {
		line := ""
		for i, ins := range instructions {
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
				t.Errorf("%s, instruction %d: %v has no barrier, and its source line is\n\t%s", section, i, ins, strings.TrimSpace(line))
			}
		}
	}
	t.Logf("%d are ordered, %d relaxed", ordered, relaxed)
	if ordered < 20 || relaxed == 0 {
		t.Error("the object has more than that")
	}
}

// The loader counts with what the programs keep for root's cgroups, before it has loaded them.
func TestTheLoaderKnowsWhatIsReserved(t *testing.T) {
	reserved := regexp.MustCompile(`#define RESERVED_SLOTS (\d+)`)
	var said []string
	for _, file := range []string{"tier.bpf.h", "limits.c"} {
		text, err := os.ReadFile("../../sched/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := reserved.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s does not say how many slots are reserved", file)
		}
		said = append(said, string(found[1]))
	}
	if said[0] != said[1] {
		t.Errorf("the programs reserve %s slots, and the loader counts with %s", said[0], said[1])
	}
}

// programs are the instructions of each section, with their source lines.
func programs(t *testing.T) map[string]asm.Instructions {
	t.Helper()
	file, err := os.Open("../../build/temper.bpf.o")
	if err != nil {
		t.Fatal("make sched builds it: ", err)
	}
	defer file.Close()
	object, err := elf.NewFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, lines, err := btf.LoadSpecAndExtInfosFromReader(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]asm.Instructions{}
	for _, s := range object.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 {
			continue
		}
		instructions, err := asm.AppendInstructions(nil, s.Open(), object.ByteOrder, "linux")
		if err != nil {
			t.Fatal(s.Name, err)
		}
		_, offsets, _ := lines.Section(s.Name)
		for i, each := 0, instructions.Iterate(); each.Next(); {
			for ; i < len(offsets) && offsets[i].Offset <= each.Offset; i++ {
				*each.Ins = each.Ins.WithSource(offsets[i].Line)
			}
		}
		all[s.Name] = instructions
	}
	return all
}
