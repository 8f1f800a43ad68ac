//go:build guest

package guest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a background task hands to a worker of io_uring gets done while critical work never leaves a CPU.
func ringWorkersGetOn(t *testing.T) {
	ring := play(t, ringRole+"=1", t.TempDir())
	written := make([]byte, 1<<16)
	if _, err := ring.works.Read(written); err != nil {
		t.Fatal(err)
	}
	ring.moveTo(t, "/background")
	spin(t, "/critical", 2*runtime.NumCPU())
	for range 5 { // of which the first finds what was written before
		promptly(t, "a write that a worker does is done", func() {
			if _, err := ring.works.Read(written); err != nil {
				t.Fatal(err)
			}
		})
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
