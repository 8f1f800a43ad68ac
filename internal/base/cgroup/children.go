package cgroup

import (
	"bytes"
	"encoding/binary"
	"path"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/host"
)

// Child is a cgroup in another.
type Child struct {
	Name string
	ID   uint64
}

// Path is its path in the tree.
func (c Child) Path(parent string) string { return path.Join(parent, c.Name) }

// Children are the cgroups directly in cg, in no order; none if it is not there. The kernel lists names, inode numbers and
// kinds together (cgroup2 says all of them), so that the ids of all pods take no further system call.
func Children(root host.Root, cg string) (list []Child) {
	fd, err := unix.Open(root.Cgroup(cg), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var buffer [8 << 10]byte
	for {
		n, err := unix.ReadDirent(fd, buffer[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 { // an error: it was removed meanwhile
			return list
		}
		list = append(list, directories(buffer[:n])...)
	}
}

// directories are those among entries as getdents64 gives them: struct linux_dirent64.
func directories(entries []byte) (list []Child) {
	const ino, length, kind, name = 0, 16, 18, 19
	for len(entries) > name {
		entry := entries[:binary.NativeEndian.Uint16(entries[length:])]
		entries = entries[len(entry):]
		text, _, _ := bytes.Cut(entry[name:], []byte{0})
		if entry[kind] == unix.DT_DIR && string(text) != "." && string(text) != ".." {
			list = append(list, Child{string(text), binary.NativeEndian.Uint64(entry[ino:])})
		}
	}
	return list
}
