//go:build guest

package guest

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const khugepaged = "/sys/kernel/mm/transparent_hugepage/khugepaged/"

// busyKhugepaged gives the kernel's thread khugepaged work without an end: it looks for huge pages in
// memory where each lacks one of its pages, and may make none of those.
func busyKhugepaged(t *testing.T) *spinner {
	t.Helper()
	setting := func(path, value string) {
		t.Helper()
		_, old, chosen := strings.Cut(read(t, path), "[")
		if old, _, _ = strings.Cut(old, "]"); !chosen {
			old = read(t, path)
		}
		write(t, path, value)
		t.Cleanup(func() { write(t, path, old) })
	}
	setting("/sys/kernel/mm/transparent_hugepage/enabled", "madvise")
	setting(khugepaged+"max_ptes_none", "0")
	setting(khugepaged+"scan_sleep_millisecs", "0")
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
func TestTimedKernelThreadsAreHeldToAShare(t *testing.T) {
	attachTiers(t)
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
	if got := used(t, second(), kernel, critical); got[0] < 0.18 {
		t.Errorf("khugepaged, no longer nice, has %.3f beside critical, less than the share of its tier", got[0])
	}
	if snapshot(t).Stats.SystemOver == before {
		t.Error("what a thread of the kernel uses is not charged to the share of its tier")
	}
}
