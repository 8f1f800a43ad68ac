// Package machine is the virtual machine: which arguments make QEMU a machine of one constant speed, and a boot of it, from a
// folder of its own to the events that the guest writes. A host's clock and its other work must not show in a figure, and
// nothing of a guest may outlive its run.
//
// What is in the guest, and what its events mean, is known to those who boot it.
package machine

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

const (
	emulatorProgram = "qemu-system-x86_64"
	consoleFile     = "console.log"
	dataFile        = "data.jsonl"
	monitorFile     = "monitor"
	answersFile     = "answers"
	memoryMB        = 2048
)

// Speed is a machine of one constant speed per CPU. The emulator runs its CPUs in turn on one host
// thread, 2^-shift instructions a nanosecond, so the number of CPUs and the shift set the speed of
// each.
type Speed struct {
	vcpus, shift int
}

// machines are those of ladders, smallest first. The first two give a CPU 167 million instructions a guest
// second; 1,000 million for all CPUs is the most that the emulator counts, so the larger ones are slower, and
// figures of theirs are compared with each other only.
var machines = []Speed{{3, 1}, {6, 0}, {12, 0}, {24, 0}}

// evenMachines all give a CPU 42 million, so that what is counted on them differs by the number of CPUs alone.
var evenMachines = []Speed{{3, 3}, {6, 2}, {12, 1}, {24, 0}}

// ForLadder is the smallest machine of ladders that has room for so many application CPUs and the load generator.
func ForLadder(cpus int) (Speed, error) { return smallest(machines, cpus) }

// Even is the same of the machines of one speed.
func Even(cpus int) (Speed, error) { return smallest(evenMachines, cpus) }

// smallest is the first of some machines that has room for the application CPUs and the load generator's.
func smallest(of []Speed, cpus int) (Speed, error) {
	for _, s := range of {
		if cpus >= 1 && cpus+plan.GeneratorCPUs(cpus) <= s.vcpus {
			return s, nil
		}
	}
	most := of[len(of)-1].vcpus
	for most+plan.GeneratorCPUs(most) > of[len(of)-1].vcpus {
		most--
	}
	return Speed{}, exit.New(exit.Usage, fmt.Sprintf("choose 1 to %d", most),
		"no machine of the lab's constant speed has %d application CPUs", cpus)
}

// OfSize is the machine of ladders with so many CPUs.
func OfSize(cpus int) (Speed, error) {
	var sizes []string
	for _, s := range machines {
		if s.vcpus == cpus {
			return s, nil
		}
		sizes = append(sizes, strconv.Itoa(s.vcpus))
	}
	return Speed{}, exit.New(exit.Usage, "choose from "+strings.Join(sizes, ", "), "no deterministic machine has %d CPUs", cpus)
}

// mips is the speed of one CPU, in million instructions a guest second.
func (s Speed) mips() float64 {
	return 1000 / float64(int(1)<<s.shift) / float64(s.vcpus)
}

// HostFactor is about how many real seconds a guest second takes, for estimates and deadlines.
func (s Speed) HostFactor() float64 {
	return 3 / float64(int(1)<<s.shift)
}

// DeterministicArgs start a machine whose time is its executed instructions. Each piece removes one
// source of difference between runs or CPUs; docs and the design name them one by one:
// idle=poll and the steady kernel (kernels/steady.go) make an idle CPU use its turn as a busy one does. A CPU
// that the kernel does not know gives all turns one length, by means of an HPET that the kernel leaves
// alone (guest/load/quantum.c). The rest removes the host's clock, its random numbers, and
// address randomization.
func DeterministicArgs(s Speed, kernel string, words ...string) []string {
	return append([]string{
		"-accel", "tcg,thread=single",
		"-monitor", "none",
		"-icount", fmt.Sprintf("shift=%d,sleep=off", s.shift),
		"-rtc", "base=2026-01-01,clock=vm",
		"-smp", strconv.Itoa(s.vcpus + 1),
		"-append", commandLine(append(words, "idle=poll", "hpet=disable", fmt.Sprintf("nr_cpus=%d", s.vcpus))...),
	}, commonArgs("hpet=on", kernel)...)
}

// FastArgs start a machine with one host thread a CPU: quick, for tests of function, never of speed.
// On a busy host the kernel may count too few timer interrupts at boot, and panic: no_timer_check. It may also find the
// counter of cycles wrong, and make its clock of timer interrupts instead: once all CPUs idle, that one stands still, and
// the guest with it: tsc=reliable. By unknown_nmi_panic askWhereItIs gets an answer.
func FastArgs(smp, kernel string, words ...string) []string {
	return append([]string{
		"-accel", "tcg,thread=multi",
		"-smp", smp,
		"-monitor", "unix:" + monitorFile + ",server=on,wait=off",
		"-append", commandLine(append(words, "no_timer_check", "tsc=reliable", "unknown_nmi_panic")...),
	}, commonArgs("hpet=off", kernel)...)
}

const mostCPUs = 32 // of a fast machine

var topologyText = regexp.MustCompile(`^(\d{1,2})x(\d{1,2})x(\d{1,2})$`)

// ParseTopology reads sockets x cores x threads, and returns what the emulator takes for it.
func ParseTopology(text string) (smp string, err error) {
	m := topologyText.FindStringSubmatch(text)
	cpus := 0
	if m != nil {
		cpus = 1
		for _, digits := range m[1:] {
			n, _ := strconv.Atoi(digits)
			cpus *= n
		}
	}
	if cpus < 1 || cpus > mostCPUs {
		return "", exit.New(exit.Usage, fmt.Sprintf("write SOCKETSxCORESxTHREADS, as 1x2x2, for 1 to %d CPUs", mostCPUs), "no such topology: %q", text)
	}
	return fmt.Sprintf("%d,sockets=%s,cores=%s,threads=%s", cpus, m[1], m[2], m[3]), nil
}

// commonArgs connect the guest by files: a pipe could hold the guest up when the host is slow to
// read. Paths are relative to the folder that the guest runs in.
func commonArgs(hpet, kernel string) []string {
	return []string{
		"-machine", "pc," + hpet,
		"-cpu", "max,-rdrand,-rdseed",
		"-m", strconv.Itoa(memoryMB),
		"-kernel", kernel,
		"-initrd", "initrd",
		"-display", "none", "-no-reboot", "-nic", "none",
		"-serial", "file:" + consoleFile,
		"-serial", "file:" + dataFile,
	}
}

// commandLine is the kernel's. No preempt=: it boots in its own default, and arms switch at run time.
// The tests of its crypto code and its memory statistics go on after boot, on any CPU: for seconds of
// guest time, and for ever.
func commandLine(extra ...string) string {
	words := []string{"console=ttyS0", "quiet", "panic=-1", "nokaslr", "iomem=relaxed", "cryptomgr.notests", "damon_stat.enabled=N"}
	return strings.Join(slices.Concat(words, extra), " ")
}

// Emulator is the QEMU of this host.
type Emulator struct {
	Path, version string
}

var emulatorVersion = regexp.MustCompile(`version (\d+)(\.\S+(?: \([^)]*\))?)`)

// FindEmulator refuses one that is too old.
func FindEmulator(ctx context.Context) (Emulator, error) {
	path, err := exec.LookPath(emulatorProgram)
	if err != nil {
		return Emulator{}, exit.New(exit.Failed, "run 'make deps', or install qemu-system-x86", "the lab needs %s", emulatorProgram)
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return Emulator{}, fmt.Errorf("%s --version: %w", path, err)
	}
	m := emulatorVersion.FindStringSubmatch(string(out))
	if m == nil {
		return Emulator{}, fmt.Errorf("%s --version says %q", path, out)
	}
	if major, err := strconv.Atoi(m[1]); err != nil || major < 8 {
		return Emulator{}, exit.New(exit.Failed, "run 'make deps', or install QEMU 8 or newer", "QEMU here is %s", m[1]+m[2])
	}
	return Emulator{path, m[1] + m[2]}, nil
}

// Record is how a record names the machine.
func (s Speed) Record(e Emulator, quantum int) bench.Machine {
	return bench.Machine{Kind: "lab", MIPSPerCPU: s.mips(), QuantumUS: quantum, Emulator: e.version}
}
