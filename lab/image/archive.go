package image

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// Archive is an initrd in the making: what is at each path of the guest, without the leading slash.
// Nothing but paths, contents, links and modes goes in (no dates, owners or inode numbers of the
// host), and paths are sorted, so that equal content gives equal bytes.
type Archive map[string]node

// node is one file, folder or link.
type node struct {
	mode   cpio.FileMode
	host   string // file to copy from the host
	data   []byte // or its content
	target string // of a link
}

// inArchive is a path of the guest as the archive's keys are.
func inArchive(guest string) string { return strings.TrimPrefix(filepath.Clean("/"+guest), "/") }

func (a Archive) dir(name string) {
	if name != "." && name != "" {
		a.dir(path.Dir(name))
		a[name] = node{mode: cpio.TypeDir | 0o755}
	}
}

func (a Archive) add(name string, n node) {
	name = inArchive(name)
	a.dir(path.Dir(name))
	a[name] = n
}

// Data adds a file of a content that is not on the host.
func (a Archive) Data(name string, data []byte) {
	a.add(name, node{mode: cpio.TypeReg | 0o644, data: data})
}

func (a Archive) link(name, target string) {
	a.add(name, node{mode: cpio.TypeSymlink | 0o777, target: target})
}

// Program adds an executable file of the host.
func (a Archive) Program(name, host string) { a.file(name, host, 0o755) }

// file adds a file of the host, executable for all or for nobody.
func (a Archive) file(name, host string, mode fs.FileMode) {
	n := node{mode: cpio.TypeReg | 0o644, host: host}
	if mode&0o111 != 0 {
		n.mode |= 0o111
	}
	a.add(name, n)
}

// write writes the archive in the format that the kernel unpacks, padded so that another can follow.
func (a Archive) write(w io.Writer) error {
	out := cpio.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if err := a[name].write(out, name); err != nil {
			return err
		}
	}
	return out.Close()
}

// Unpack makes the archive's files, folders and links below a folder. Modes are the archive's, whatever this process masks:
// a service that is not root has to read them.
func (a Archive) Unpack(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if err := a[name].unpack(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (n node) unpack(at string) error {
	switch {
	case n.mode&cpio.TypeDir != 0:
		return errors.Join(os.MkdirAll(at, 0o755), os.Chmod(at, 0o755))
	case n.target != "":
		return os.Symlink(n.target, at)
	}
	data, err := n.content()
	if err != nil {
		return err
	}
	mode := fs.FileMode(n.mode.Perm())
	return errors.Join(os.WriteFile(at, data, mode), os.Chmod(at, mode))
}

// content is that of a file, and a link's target.
func (n node) content() ([]byte, error) {
	switch {
	case n.host != "":
		return os.ReadFile(n.host)
	case n.target != "":
		return []byte(n.target), nil
	}
	return n.data, nil
}

func (n node) write(w *cpio.Writer, name string) error {
	data, err := n.content()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&cpio.Header{Name: name, Mode: n.mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
