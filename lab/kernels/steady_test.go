package kernels

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// From Debian's 6.18.15: cpu_idle_poll's loop, and poll_idle's, which is not it.
var (
	idleLoop = []byte{
		0xf3, 0x90, 0x48, 0x8b, 0x03, 0xa8, 0x10, 0x75, 0x13,
		0x8b, 0x05, 0x56, 0x53, 0x2b, 0x01, 0x85, 0xc0, 0x75, 0xed,
		0xe8, 0x39, 0xea, 0xff, 0xff, 0x85, 0xc0, 0x75, 0xe4,
	}
	otherLoop = []byte{
		0x49, 0x8b, 0x16, 0x83, 0xe2, 0x10, 0x75, 0x17,
		0xf3, 0x90, 0x83, 0xe8, 0x01, 0x75, 0xf1, 0xe8, 0x5f, 0xd8, 0xff, 0xff,
	}
)

func code(parts ...[]byte) []byte {
	nops := bytes.Repeat([]byte{0x90}, 64)
	out := bytes.Clone(nops)
	for _, p := range parts {
		out = append(append(out, p...), nops...)
	}
	return out
}

func TestKeepTurnChangesOnePause(t *testing.T) {
	before := code(otherLoop, idleLoop, otherLoop)
	after := bytes.Clone(before)
	if err := keepTurn(after); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(before, idleLoop)
	want := bytes.Clone(before)
	copy(want[at:], twoByteNop)
	if !bytes.Equal(after, want) {
		t.Error("something else changed")
	}
}

func TestKeepTurnRefusesWhatItDoesNotKnow(t *testing.T) {
	elsewhere := bytes.Clone(idleLoop)
	elsewhere[18]++ // jumps into the middle of the loop
	for name, kernel := range map[string][]byte{
		"no loop":              code(otherLoop),
		"two loops":            code(idleLoop, idleLoop),
		"a jump to elsewhere":  code(elsewhere),
		"cut off in the loop":  idleLoop[:len(idleLoop)-1],
		"ends with the prefix": {0xf3, 0x90},
		"empty":                nil,
	} {
		t.Run(name, func(t *testing.T) {
			if err := keepTurn(kernel); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestUnpackVmlinux(t *testing.T) {
	want := code(idleLoop)
	image, zipped := kernelImage(zstded(t, want)), kernelImage(gzipped(t, want))
	for _, image := range [][]byte{image, zipped} {
		got, err := unpackVmlinux(image)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
	}
	for name, bad := range map[string][]byte{
		"not gzip":        append(bytes.Clone(zipped[:1026]), make([]byte, len(zipped)-1026)...),
		"too short":       image[:100],
		"payload cut off": image[:len(image)-sizeTrailer-1],
		"not zstd":        append(bytes.Clone(image[:1024]), make([]byte, len(image)-1024)...),
	} {
		if _, err := unpackVmlinux(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func zstded(t *testing.T, vmlinux []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.AppendUint32(w.EncodeAll(vmlinux, nil), uint32(len(vmlinux)))
}

func gzipped(t *testing.T, vmlinux []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(vmlinux); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// kernelImage lays a packed kernel out as the boot protocol does, with one sector of set-up code.
func kernelImage(payload []byte) []byte {
	image := make([]byte, 2*sectorSize)
	image[setupSectors] = 1
	binary.LittleEndian.PutUint32(image[payloadLength:], uint32(len(payload)))
	return append(image, payload...)
}
