//go:build guest

package guest

import (
	"os"
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

const boundByKernelRole = "TEMPER_TEST_BOUND_BY_KERNEL"

// beBoundByKernel runs a BPF program again and again, and prints a byte after each. Until one ends, the kernel lets its
// task not migrate: some 20 ms in the lab.
func beBoundByKernel() {
	const rounds = 50_000
	number := &btf.Int{Size: 8}
	name := func(name string, args ...btf.FuncParam) func(asm.Instruction) asm.Instruction {
		f := &btf.Func{Name: name, Type: &btf.FuncProto{Return: number, Params: args}, Linkage: btf.StaticFunc}
		return func(ins asm.Instruction) asm.Instruction { return btf.WithFuncMetadata(ins.WithSymbol(name), f) }
	}
	body := asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}.WithReference("body")
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Syscall, Flags: sleepable, License: "GPL",
		Instructions: asm.Instructions{
			name("long_program", btf.FuncParam{Name: "context", Type: &btf.Pointer{Target: &btf.Void{}}})(asm.Mov.Imm(asm.R1, rounds)),
			body,
			asm.Mov.Imm(asm.R3, 0),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnLoop.Call(),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
			name("body", btf.FuncParam{Name: "index", Type: number}, btf.FuncParam{Name: "context", Type: &btf.Pointer{Target: &btf.Void{}}})(asm.FnKtimeGetNs.Call()),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		},
	})
	if err != nil {
		panic(err)
	}
	for {
		if _, err := program.Run(&ebpf.RunOptions{}); err != nil {
			panic(err)
		}
		os.Stdout.Write([]byte{1})
	}
}

const sleepable = 1 << 4 // BPF_F_SLEEPABLE

// A background task that the kernel has bound to its CPU for a moment gets on while critical work never leaves one:
// somebody may wait for it to be movable again.
func whoMayNotMigrateGetsOn(t *testing.T) {
	bound := play(t, boundByKernelRole+"=1")
	ran := make([]byte, 1<<16)
	if _, err := bound.works.Read(ran); err != nil {
		t.Fatal(err)
	}
	bound.moveTo(t, "/background")
	spin(t, "/critical", 2*runtime.NumCPU())
	for range 5 { // of which the first finds what was done before
		promptly(t, "a program that disables migration ends", func() {
			if _, err := bound.works.Read(ran); err != nil {
				t.Fatal(err)
			}
		})
	}
}
