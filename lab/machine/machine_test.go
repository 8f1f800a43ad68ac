package machine

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

func TestMachinesHaveOneSpeed(t *testing.T) {
	for _, test := range []struct {
		of        []Speed
		mostCPUs  int
		low, high float64 // MIPS
	}{
		{machines, 4, 166.6, 166.7},
		{machines, 16, 41.6, 166.7},
		{evenMachines, 16, 41.6, 41.7},
	} {
		for cpus := 1; cpus <= test.mostCPUs; cpus++ {
			s, err := smallest(test.of, cpus)
			if err != nil {
				t.Fatal(err)
			}
			if s.vcpus < cpus+plan.GeneratorCPUs(cpus) {
				t.Errorf("%d CPUs: not enough CPUs for the load generator among %d", cpus, s.vcpus)
			}
			if got := s.mips(); got < test.low || got > test.high {
				t.Errorf("%d CPUs: %v MIPS", cpus, got)
			}
		}
	}
	for _, cpus := range []int{-1, 0, 17, 64} {
		if _, err := smallest(machines, cpus); exit.StatusOf(err) != exit.Usage {
			t.Errorf("%d CPUs: got %v", cpus, err)
		}
	}
}

func TestDeterministicArgs(t *testing.T) {
	got := strings.Join(DeterministicArgs(machines[1], "K"), " ")
	want := "-accel tcg,thread=single -monitor none -icount shift=0,sleep=off -rtc base=2026-01-01,clock=vm -smp 7 " +
		"-append console=ttyS0 quiet panic=-1 nokaslr iomem=relaxed cryptomgr.notests damon_stat.enabled=N idle=poll hpet=disable nr_cpus=6 " +
		"-machine pc,hpet=on -cpu max,-rdrand,-rdseed -m 2048 -kernel K -initrd initrd " +
		"-display none -no-reboot -nic none -serial file:console.log -serial file:data.jsonl"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFastArgsDoNotCountInstructions(t *testing.T) {
	got := strings.Join(FastArgs("4", "K"), " ")
	for _, word := range []string{"icount", "idle=poll", "kvm"} {
		if strings.Contains(got, word) {
			t.Errorf("%s in %s", word, got)
		}
	}
	if !strings.Contains(got, "-accel tcg,thread=multi -smp 4 ") {
		t.Error(got)
	}
}

func TestTopology(t *testing.T) {
	if got, err := ParseTopology("2x4x2"); err != nil || got != "16,sockets=2,cores=4,threads=2" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"", "4", "1x2", "1x2x2x2", "0x1x1", "1x33x1", "1x2x-2", "1x2x2 "} {
		if _, err := ParseTopology(bad); exit.StatusOf(err) != exit.Usage {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestEmulatorVersion(t *testing.T) {
	for out, want := range map[string]string{
		"QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\nCopyright": "10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)",
		"QEMU emulator version 8.2.2\n": "8.2.2",
	} {
		m := emulatorVersion.FindStringSubmatch(out)
		if m == nil || m[1]+m[2] != want {
			t.Errorf("%q: got %q", out, m)
		}
	}
}

func TestWordsOfTheCommandLine(t *testing.T) {
	for _, args := range [][]string{FastArgs("4", "K", "isolcpus=1", "quiet"), DeterministicArgs(machines[1], "K", "isolcpus=1", "quiet")} {
		if line := strings.Join(args, " "); !strings.Contains(line, " isolcpus=1 quiet ") {
			t.Errorf("the command line is %q", line)
		}
	}
}
