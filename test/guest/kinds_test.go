//go:build guest

package guest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Each kind of background task has turns while critical work never leaves a CPU.
func TestTimedKindsOfTasksGetOn(t *testing.T) {
	joinSystem(t)
	attachTiers(t)
	n := runtime.NumCPU()
	some := spin(t, "/background", 4)
	for _, s := range some {
		bind(t, s.pid, firstCPUs(n-1))
	}
	ring := play(t, ringRole+"=1", t.TempDir())
	written := make([]byte, 1<<16)
	if _, err := ring.works.Read(written); err != nil {
		t.Fatal(err)
	}
	ring.moveTo(t, "/background")
	spin(t, "/critical", 2*n)
	t.Run("bound to some CPUs", func(t *testing.T) {
		w := &starved{tasks: some}
		for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
			w.look(t)
			time.Sleep(50 * time.Millisecond) // between samples
		}
		t.Logf("longest time without a CPU: %v", w.longest)
		if w.longest > 2*time.Second {
			t.Errorf("%v without a CPU", w.longest)
		}
	})
	t.Run("workers of io_uring", func(t *testing.T) {
		for range 5 { // of which the first finds what was written before
			promptly(t, "a write that a worker does is done", func() {
				if _, err := ring.works.Read(written); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}

// Of two thousand background tasks each has a turn in the time that progress.bpf.h promises, and the kernel throws nobody
// out.
func TestTimedThousandsOfTasksGetOn(t *testing.T) {
	joinSystem(t)
	attachTiers(t)
	before := kernel(t)
	crowd := spin(t, "/background", 2000)
	spin(t, "/critical", 2*runtime.NumCPU())
	had := map[*spinner]int{}
	for _, s := range crowd {
		had[s] = s.runs(t)
	}
	start := time.Now()
	for len(had) > 0 && time.Since(start) < backgroundBound {
		time.Sleep(200 * time.Millisecond) // between samples
		for s, runs := range had {
			if s.runs(t) != runs {
				delete(had, s)
			}
		}
	}
	took := time.Since(start)
	t.Logf("all but %d have had a turn within %v", len(had), took.Round(time.Millisecond))
	if took > 12*time.Second {
		t.Errorf("%d of %d have had no turn within %v", len(had), len(crowd), took)
	}
	if after := kernel(t); after != before {
		t.Errorf("the kernel said %+v before, %+v after", before, after)
	}
}

const ringRole = "TEMPER_TEST_RING"

// beARing has a worker of io_uring write to a file, over and over, and prints a byte after each.
func beARing(dir string) {
	file, err := unix.Open(filepath.Join(dir, "file"), unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		panic(err)
	}
	const (
		entries, ringBytes  = 1, 4096
		sqes                = 0x10000000 // IORING_OFF_SQES
		opWrite, async      = 23, 1 << 4
		sqTail, sqArray     = 40 + 4, 40 + 24 // where io_uring_params says how far into the ring they are
		cqHead              = 80
		enterSetup, enter   = 425, 426
		minComplete, events = 1, 1
	)
	params := make([]byte, 120)
	ring, _, errno := unix.Syscall(enterSetup, entries, uintptr(unsafe.Pointer(&params[0])), 0)
	if errno != 0 {
		panic(fmt.Sprint("io_uring_setup: ", errno))
	}
	shared, err := unix.Mmap(int(ring), 0, ringBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		panic(err)
	}
	requests, err := unix.Mmap(int(ring), sqes, ringBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		panic(err)
	}
	at := func(param int) *uint32 {
		return (*uint32)(unsafe.Pointer(&shared[binary.NativeEndian.Uint32(params[param:])]))
	}
	data := make([]byte, 1<<16)
	for {
		clear(requests[:64])
		requests[0], requests[1] = opWrite, async
		binary.NativeEndian.PutUint32(requests[4:], uint32(file))
		binary.NativeEndian.PutUint64(requests[16:], uint64(uintptr(unsafe.Pointer(&data[0]))))
		binary.NativeEndian.PutUint32(requests[24:], uint32(len(data)))
		*at(sqArray) = 0
		*at(sqTail)++
		if _, _, errno := unix.Syscall6(enter, ring, 1, minComplete, events, 0, 0); errno != 0 {
			panic(fmt.Sprint("io_uring_enter: ", errno))
		}
		*at(cqHead)++
		os.Stdout.Write([]byte{1})
	}
}
