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

// machine says what the runs are done on, and with which programs: the node, and the Java service, if that is measured,
// with what it has from this repository.
func machine(node, jar string) (m record.Machine, err error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return m, err
	}
	programs := []string{node}
	if jar != "" {
		libraries, err := filepath.Glob(filepath.Join(filepath.Dir(jar), "lib", "temper-*.jar"))
		if err != nil {
			return m, err
		}
		programs = append(append(programs, jar), libraries...)
	}
	m = record.Machine{Kernel: unix.ByteSliceToString(name.Release[:]), CPUs: runtime.NumCPU(), Hashes: map[string]string{}}
	for _, p := range programs {
		content, err := os.ReadFile(p)
		if err != nil {
			return m, err
		}
		sum := sha256.Sum256(content)
		m.Hashes[filepath.Base(p)] = hex.EncodeToString(sum[:])
	}
	return m, nil
}
