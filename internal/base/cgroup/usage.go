package cgroup

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/host"
)

// Used is the CPU time that a cgroup has used, in microseconds; nil if it is not there.
func Used(root host.Root, cg string) *uint64 { return read(root, cg, "cpu.stat", "usage_usec ") }

// Waited is the time in which some task of a cgroup waited for a CPU (the kernel's PSI), in microseconds; nil if it is not
// there, or if the kernel does not count it.
func Waited(root host.Root, cg string) *uint64 {
	return read(root, cg, "cpu.pressure", "some ", "total=")
}

// read is the number in a line of a cgroup's file: what comes after all the words, of which the first begins the line.
// The files of all pods are read at each scrape, so it takes three system calls and no memory for each.
func read(root host.Root, cg, file string, words ...string) *uint64 {
	fd, err := unix.Open(root.Cgroup(cg)+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var page [4096]byte // the kernel's own bound for such a file is a page, and the lines that are read come first
	n, err := unix.Read(fd, page[:])
	if err != nil {
		return nil
	}
	for text := page[:n]; len(text) > 0; {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		rest, found := bytes.CutPrefix(line, []byte(words[0]))
		for _, word := range words[1:] {
			_, rest, _ = bytes.Cut(rest, []byte(word))
		}
		if !found {
			continue
		}
		if number, err := strconv.ParseUint(string(rest), 10, 64); err == nil {
			return &number
		}
	}
	return nil
}
