package enforce

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// control is map "control" in the kernel's own memory. Each field is written for itself: scx_temper, the agent and
// temper run each write others, and whoever wrote the whole entry would undo what comes meanwhile.
type control struct {
	memory []byte
	entry  *Control
}

// openControl maps the one that is pinned in dir; ErrNotPinned if there is none.
func openControl(dir string) (*control, error) {
	m, err := openPinned(dir, "control")
	if err != nil {
		return nil, err
	}
	defer m.Close() // what is mapped stays
	memory, err := unix.Mmap(m.FD(), 0, int(unsafe.Sizeof(Control{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot map \"control\" into memory: %w", err)
	}
	return &control{memory, (*Control)(unsafe.Pointer(&memory[0]))}, nil
}

func (c *control) publish() { atomic.AddUint64(&c.entry.TierGen, 1) }

func (c *control) reserve(milliCPU uint64) { atomic.StoreUint64(&c.entry.ReservationMCPU, milliCPU) }

func (c *control) close() error { return unix.Munmap(c.memory) }
