package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"temper.dev/temper/pathfence/bench/record"
)

// machine says what the runs are done on, and with which programs.
func machine(programs ...string) (m record.Machine, err error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return m, err
	}
	m = record.Machine{Kernel: unix.ByteSliceToString(name.Release[:]), CPUs: runtime.NumCPU(), Hashes: map[string]string{}}
	for _, p := range programs {
		if p == "" {
			continue
		}
		content, err := os.ReadFile(p)
		if err != nil {
			return m, err
		}
		sum := sha256.Sum256(content)
		m.Hashes[filepath.Base(p)] = hex.EncodeToString(sum[:])
	}
	return m, nil
}
