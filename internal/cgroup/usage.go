package cgroup

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"temper.dev/temper/internal/host"
)

// Used is the CPU time that a cgroup has used, in microseconds; nil if it is not there.
func Used(root host.Root, cg string) *uint64 { return read(root, cg, "cpu.stat", "usage_usec ") }

// Waited is the time in which some task of a cgroup waited for a CPU (the kernel's PSI), in microseconds; nil if it is not
// there, or if the kernel does not count it.
func Waited(root host.Root, cg string) *uint64 {
	return read(root, cg, "cpu.pressure", "some ", "total=")
}

// read is the number in a line of a cgroup's file: what comes after all the words, of which the first begins the line.
func read(root host.Root, cg, file string, words ...string) *uint64 {
	f, err := os.Open(filepath.Join(root.Cgroup(cg), file))
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		rest, found := strings.CutPrefix(lines.Text(), words[0])
		for _, word := range words[1:] {
			_, rest, _ = strings.Cut(rest, word)
		}
		if !found {
			continue
		}
		if n, err := strconv.ParseUint(rest, 10, 64); err == nil {
			return &n
		}
	}
	return nil
}
