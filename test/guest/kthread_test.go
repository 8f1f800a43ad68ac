//go:build guest

package guest

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const khugepaged = "/sys/kernel/mm/transparent_hugepage/khugepaged/"

// busyKhugepaged gives the kernel's thread khugepaged work without an end: it looks for huge pages in
// memory where each lacks one of its pages, and may make none of those.
func busyKhugepaged(t *testing.T) *spinner {
	t.Helper()
	setting(t, "/sys/kernel/mm/transparent_hugepage/enabled", "madvise")
	setting(t, khugepaged+"max_ptes_none", "0")
	setting(t, khugepaged+"scan_sleep_millisecs", "0")
	const huge, page, count = 2 << 20, 4 << 10, 8
	memory, err := unix.Mmap(-1, 0, count*huge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(memory) })
	for at := range len(memory) / page {
		if at%(huge/page) != 7 {
			memory[at*page] = 1
		}
	}
	if err := unix.Madvise(memory, unix.MADV_HUGEPAGE); err != nil {
		t.Fatal(err)
	}
	return &spinner{pid: kthread(t, "khugepaged")}
}

// setting changes a setting of the kernel until the test ends.
func setting(t *testing.T, path, value string) {
	t.Helper()
	old := read(t, path)
	if _, chosen, choice := strings.Cut(old, "["); choice { // one of the names that the file lists
		old, _, _ = strings.Cut(chosen, "]")
	}
	write(t, path, value)
	t.Cleanup(func() { write(t, path, old) })
}

// kthread finds a thread of the kernel by its name.
func kthread(t *testing.T, name string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		comm, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		if pid, err := strconv.Atoi(e.Name()); err == nil && strings.TrimSpace(string(comm)) == name {
			return pid
		}
	}
	t.Fatalf("this kernel has no %s", name)
	return 0
}

// A thread of the kernel that any CPU may run has no claim to more than the system tier's share; one
// that the kernel itself holds back by nice has none before services.
func kernelThreadsAreHeldToAShare(t *testing.T) {
	kernel := []*spinner{busyKhugepaged(t)}
	background := spin(t, "/background", runtime.NumCPU())
	if got := used(t, second(), kernel, background); got[0] < 0.9/float64(runtime.NumCPU()) {
		t.Errorf("khugepaged has %.3f beside background: it has no work, or no precedence", got[0])
	}
	critical := spin(t, "/critical", runtime.NumCPU())
	if got := used(t, second(), kernel, critical); got[0] < 0.002 || got[0] > mostStandard {
		t.Errorf("khugepaged, which is nice, has %.3f beside critical", got[0])
	}
	kernel[0].nice(t, 0)
	t.Cleanup(func() { kernel[0].nice(t, 19) })
	before := snapshot(t).Stats.SystemOver
	got := used(t, second(), kernel, critical)
	t.Logf("khugepaged, no longer nice, has %.3f beside critical", got[0])
	if got[0] < 0.15 { // others of the system tier use some of its fifth
		t.Error("that is less than the share of its tier")
	}
	if snapshot(t).Stats.SystemOver == before {
		t.Error("what a thread of the kernel uses is not charged to the share of its tier")
	}
}

// What interrupts leave behind (here packets) a thread of each CPU does when it gets too much. Critical
// work that never leaves that CPU does not keep it waiting.
func softirqThreadGetsOn(t *testing.T) {
	cpu := runtime.NumCPU() - 1
	burst := busySoftirqs(t, cpu)
	spin(t, "/critical", 2*runtime.NumCPU())
	thread := &spinner{pid: kthread(t, fmt.Sprintf("ksoftirqd/%d", cpu))}
	runs, waited := thread.runs(t), thread.waited(t)
	const bursts = 100
	for range bursts {
		promptly(t, "a burst arrives", burst)
	}
	runs, waited = thread.runs(t)-runs, thread.waited(t)-waited
	t.Logf("ksoftirqd ran %d times for %d bursts, and waited %v", runs, bursts, waited)
	if runs < bursts/3 {
		t.Error("ksoftirqd had next to no work, or no CPU")
	}
	if mean := waited / time.Duration(max(runs, 1)); mean > time.Millisecond {
		t.Errorf("ksoftirqd waits %v for its CPU each time", mean)
	}
}

// Packets that never end keep that thread busy: it comes first for half of the CPU, and has no more than critical of the rest.
func endlessSoftirqsLeaveTimeForCritical(t *testing.T) {
	eachCrowd(t, endlessSoftirqsBesideCritical)
}

func endlessSoftirqsBesideCritical(t *testing.T, others int) {
	cpu := runtime.NumCPU() - 1
	burst := busySoftirqs(t, cpu)
	ctx, cancel := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for range 3 {
		senders.Go(func() {
			for ctx.Err() == nil {
				burst()
			}
		})
	}
	defer senders.Wait()
	defer cancel()
	critical := pinned(t, "/critical", cpu)
	thread := &spinner{pid: kthread(t, fmt.Sprintf("ksoftirqd/%d", cpu))}
	had := used(t, 2*time.Second, critical, []*spinner{thread})
	t.Logf("critical has %.3f of what both have, ksoftirqd %.3f", had[0], had[1])
	least := 0.3
	if others > 0 { // the senders, which are the system, use some of this CPU as well
		least = 0.25
	}
	if had[0] < least || had[1] < 0.3 {
		t.Error("one of them is kept from the CPU")
	}
}

// eachCrowd runs a test with no other critical task, and with many on CPU 0: each of those is due a small part of what its
// tier is, and so is the one on this CPU.
func eachCrowd(t *testing.T, run func(t *testing.T, others int)) {
	for _, others := range []int{0, 40} {
		t.Run(fmt.Sprintf("%dOthers", others), func(t *testing.T) {
			for _, s := range spin(t, "/critical", others) {
				s.pin(t, 0)
			}
			run(t, others)
		})
	}
}

// busySoftirqs returns what sends a burst of packets, and waits until all have arrived. One CPU takes them
// in, which is made much slower than sending them, so that its thread of soft interrupts has to do most of
// it. It takes them one by one: an interrupt that comes while the thread waits may do some itself, and keeps
// the CPU for as long as that takes.
func busySoftirqs(t *testing.T, cpu int) func() {
	t.Helper()
	setting(t, "/proc/sys/net/core/dev_weight", "1")
	setting(t, "/proc/sys/net/core/netdev_budget", "1")
	setting(t, "/sys/class/net/lo/queues/rx-0/rps_cpus", strconv.FormatInt(1<<cpu, 16))
	for range 2 {
		slowFilter(t)
	}
	const burst = 64 // fits the socket's buffer: none is dropped
	return func() {
		in, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Error(err)
			return
		}
		defer in.Close()
		packet := []byte{1}
		for range burst {
			if _, err := in.WriteTo(packet, in.LocalAddr()); err != nil {
				t.Error(err)
			}
		}
		for range burst {
			if _, _, err := in.ReadFrom(packet); err != nil {
				t.Error(err)
			}
		}
	}
}

// slowFilter looks at each packet that arrives with as long a program as the kernel allows, and takes none.
func slowFilter(t *testing.T) {
	t.Helper()
	const ipv4 = unix.ETH_P_IP&0xff<<8 | unix.ETH_P_IP>>8 // in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, ipv4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	program := make([]unix.SockFilter, unix.BPF_MAXINSNS)
	for i := range program {
		program[i] = unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_ADD | unix.BPF_K, K: 1}
	}
	program[len(program)-1] = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter); err != nil {
		t.Fatal(err)
	}
}
