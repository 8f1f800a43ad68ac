//go:build guest

package guest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"temper.dev/temper/test/paths"
)

// lateRuns may take longer than what is stated for a program: they wait for a lock of the kernel, or an interrupt comes.
const lateRuns = 2

// checkRuns compares the runs of each program with what is stated for it.
func checkRuns(t *testing.T, w *watchedRuns) {
	t.Helper()
	var stated []string
	for _, p := range paths.Longest {
		stated = append(stated, p.Program)
		r := w.of(t, p.Program)
		t.Logf("%-27s %6d runs, at most %5d instructions; %d above %5d", p.Program, r.count, r.longest, r.late, p.Instructions)
		if r.late > lateRuns {
			t.Errorf("%s: %d runs of more than %d instructions, up to %d; want at most %d", p.Program, r.late, p.Instructions, r.longest, lateRuns)
		}
	}
	slices.Sort(stated)
	if !slices.Equal(stated, w.names) {
		t.Errorf("test/paths states %v, the scheduler has %v", stated, w.names)
	}
}

// run is what is known of the runs of a program, or of a function that a timer calls.
type run struct {
	count, late, longest uint64 // late: how many took longer than stated; longest: in instructions, interrupts among them
}

type watchedRuns struct {
	names []string
	spans *ebpf.Map // by name, for each CPU: span
}

type span struct{ Began, Longest, Count, Late uint64 } // times in ns

// watchRuns puts a program before and one after each that the scheduler runs while tasks come and go.
func watchRuns(t *testing.T) *watchedRuns {
	t.Helper()
	w := &watchedRuns{}
	targets := map[string]*ebpf.Program{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if err != nil {
			break
		}
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // it has gone meanwhile
		}
		t.Cleanup(func() { p.Close() })
		for _, f := range functionsOf(t, p) {
			if isWatched(f) && targets[f] == nil {
				targets[f] = p
				w.names = append(w.names, f)
			}
		}
	}
	slices.Sort(w.names)
	var err error
	w.spans, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 32, MaxEntries: uint32(len(w.names))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.spans.Close() })
	for i, name := range w.names {
		w.attach(t, targets[name], name, ebpf.AttachTraceFEntry, asm.Instructions{asm.StoreMem(asm.R0, 0, asm.R6, asm.DWord)}, i)
		w.attach(t, targets[name], name, ebpf.AttachTraceFExit, asm.Instructions{
			asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, "exit"), // it began before it was watched
			asm.Sub.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R1, asm.R0, 16, asm.DWord),
			asm.Add.Imm(asm.R1, 1),
			asm.StoreMem(asm.R0, 16, asm.R1, asm.DWord),
			asm.JLE.Imm(asm.R6, int32(stated(name)*nanosecondsAnInstruction), "in time"),
			asm.LoadMem(asm.R1, asm.R0, 24, asm.DWord),
			asm.Add.Imm(asm.R1, 1),
			asm.StoreMem(asm.R0, 24, asm.R1, asm.DWord),
			asm.LoadMem(asm.R1, asm.R0, 8, asm.DWord).WithSymbol("in time"),
			asm.JGE.Reg(asm.R1, asm.R6, "exit"),
			asm.StoreMem(asm.R0, 8, asm.R6, asm.DWord),
		}, i)
	}
	return w
}

// stated is in instructions; 0: nothing is stated for it, which checkRuns finds.
func stated(program string) int {
	for _, p := range paths.Longest {
		if p.Program == program {
			return p.Instructions
		}
	}
	return 0
}

// isWatched: what runs but once, as the scheduler or a cgroup comes or goes, may take its time.
func isWatched(function string) bool {
	callbacks := []string{"look_at_waiting", "handoff_failed", "end_protected_turn", "turn_is_over", "unthrottle", "read_limits_anew", "check_heartbeat"}
	once := []string{"temper_init", "temper_exit", "temper_cgroup_init", "temper_cgroup_exit", "temper_init_task"}
	return slices.Contains(callbacks, function) || strings.HasPrefix(function, "temper_") && !slices.Contains(once, function)
}

func functionsOf(t *testing.T, p *ebpf.Program) (names []string) {
	t.Helper()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	functions, err := info.FuncInfos()
	if errors.Is(err, ebpf.ErrNotSupported) {
		return nil // none of ours
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range functions {
		names = append(names, f.Func.Name)
	}
	return names
}

// attach puts the clock into R6 and this CPU's span into R0 before what is done.
func (w *watchedRuns) attach(t *testing.T, target *ebpf.Program, function string, where ebpf.AttachType, do asm.Instructions, index int) {
	t.Helper()
	body := append(asm.Instructions{
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(asm.R6, asm.R0),
		asm.StoreImm(asm.RFP, -4, int64(index), asm.Word),
		asm.LoadMapPtr(asm.R1, w.spans.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
	}, do...)
	body = append(body, asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"), asm.Return())
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: where, AttachTarget: target, AttachTo: function, License: "GPL", Instructions: body,
	})
	if err != nil {
		t.Fatalf("%s: %v", function, err)
	}
	t.Cleanup(func() { p.Close() })
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		t.Fatalf("%s: %v", function, err)
	}
	t.Cleanup(func() { l.Close() })
}

// of is one of the watched; none of that name has not run.
func (w *watchedRuns) of(t *testing.T, name string) (r run) {
	t.Helper()
	i := slices.Index(w.names, name)
	if i < 0 {
		return r
	}
	var each []span
	if err := w.spans.Lookup(uint32(i), &each); err != nil {
		t.Fatal(err)
	}
	for _, s := range each {
		r.count += s.Count
		r.late += s.Late
		r.longest = max(r.longest, s.Longest/nanosecondsAnInstruction)
	}
	return r
}

// nanosecondsAnInstruction is the speed of one CPU of the deterministic machine of three (machines in lab/machine). Each
// has a third of the time, in turns of some 1,500 instructions: by so many a run may seem longer or shorter than it is.
const nanosecondsAnInstruction = 6
