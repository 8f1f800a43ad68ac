package kernels

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"temper.dev/temper/lab/cache"
)

// A CPU of the deterministic machine must have one speed, whatever its neighbours do: else the
// baseline, where most CPUs idle, is measured on a faster machine than the load. The emulator runs
// the CPUs in turn, so each gets its share as long as each uses its turn up. An idle CPU does not:
// HLT ends its turn, and so does PAUSE, which the kernel's polling idle loop (idle=poll) executes
// each time around. Measured with two of three CPUs idle: the third ran 2.5 times as fast.
//
// So the kernel is booted with that one PAUSE, two bytes, replaced by a NOP of two bytes. The loop
// polls as before and burns its turn. It also spares the host the end of a turn per iteration: a
// guest second with idle CPUs takes it 1 s instead of 12.
//
// That the turns have one length is the work of lab/guest/load/quantum.c.

// Steady returns the kernel with an idle loop that keeps its turn, made where it is not cached.
func Steady(c cache.Folder, k Kernel) (string, error) {
	path := filepath.Join(folder(c, k.Release), "vmlinux-steady")
	unlock, err := c.Lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	image, err := os.ReadFile(Vmlinuz(c, k))
	if err != nil {
		return "", err
	}
	vmlinux, err := unpackVmlinux(image)
	if err == nil {
		err = keepTurn(vmlinux)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", Vmlinuz(c, k), err)
	}
	temp, err := c.Temp()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := os.WriteFile(filepath.Join(temp, "vmlinux"), vmlinux, 0o644); err != nil {
		return "", c.Explain(err)
	}
	return path, os.Rename(filepath.Join(temp, "vmlinux"), path)
}

// Offsets in the x86 boot protocol's header.
const (
	setupSectors  = 0x1f1
	payloadOffset = 0x248
	payloadLength = 0x24c
	headerEnd     = 0x250
	sectorSize    = 512
	sizeTrailer   = 4 // the payload ends with its uncompressed size, which of gzip's is the format's own
)

var gzipMagic = []byte{0x1f, 0x8b}

// unpackVmlinux returns the kernel proper, an ELF file, from the image that boot loaders take.
func unpackVmlinux(image []byte) ([]byte, error) {
	if len(image) < headerEnd {
		return nil, errors.New("it is too short for a kernel image")
	}
	start := (int(image[setupSectors])+1)*sectorSize + int(binary.LittleEndian.Uint32(image[payloadOffset:]))
	end := start + int(binary.LittleEndian.Uint32(image[payloadLength:]))
	if start > end-sizeTrailer || end > len(image) {
		return nil, errors.New("its header gives a payload that lies outside it")
	}
	payload := image[start:end]
	if bytes.HasPrefix(payload, gzipMagic) {
		return unzip(payload)
	}
	return unzstd(payload[:len(payload)-sizeTrailer])
}

// unzip unpacks what kernels are by default, as upstream.sh builds them.
func unzip(payload []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("its payload cannot be unpacked as gzip: %w", err)
	}
	defer r.Close()
	vmlinux, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("its payload cannot be unpacked as gzip: %w", err)
	}
	return vmlinux, nil
}

// unzstd unpacks what Debian's kernels are.
func unzstd(payload []byte) ([]byte, error) {
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	vmlinux, err := d.DecodeAll(payload, nil)
	if err != nil {
		return nil, fmt.Errorf("its payload cannot be unpacked as zstd: %w", err)
	}
	return vmlinux, nil
}

var (
	pause      = []byte{0xf3, 0x90}
	twoByteNop = []byte{0x66, 0x90}
)

// keepTurn replaces the idle loop's PAUSE.
func keepTurn(vmlinux []byte) error {
	var loops []int
	for at := 0; ; at++ {
		i := bytes.Index(vmlinux[at:], pause)
		if i < 0 {
			break
		}
		if at += i; isIdleLoop(vmlinux[at:]) {
			loops = append(loops, at)
		}
	}
	if len(loops) != 1 {
		return fmt.Errorf("its idle loop was found %d times, not once, so its CPUs would have no steady speed", len(loops))
	}
	copy(vmlinux[loops[0]:], twoByteNop)
	return nil
}

// isIdleLoop recognizes cpu_idle_poll's loop in machine code. Both its jumps lead to its PAUSE:
//
//	loop:  pause
//	       ...                                  need_resched() leaves; up to 16 bytes
//	       mov   cpu_idle_force_poll(%rip),%eax
//	       test  %eax,%eax
//	       jne   loop
//	       call  tick_check_broadcast_expired
//	       test  %eax,%eax                      or %al,%al
//	       jne   loop
func isIdleLoop(code []byte) bool {
	const most, length = 16, 19 // of what is between, and of what follows it
	if len(code) < len(pause)+most+length {
		return false
	}
	i := bytes.Index(code[:len(pause)+most+2], []byte{0x8b, 0x05})
	if i < 0 {
		return false
	}
	jumpsBack := func(at int) bool { return code[at] == 0x75 && at+2+int(int8(code[at+1])) == 0 }
	testsA := func(at int) bool { return (code[at] == 0x85 || code[at] == 0x84) && code[at+1] == 0xc0 }
	return testsA(i+6) && jumpsBack(i+8) && code[i+10] == 0xe8 && testsA(i+15) && jumpsBack(i+17)
}
