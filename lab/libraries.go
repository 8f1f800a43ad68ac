package lab

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

// libraryDirs are where Debian keeps shared libraries, and where the loader looks unasked; systemd's and Java's, whose
// programs say where to look; and where loaders of other distributions look.
var libraryDirs = []string{
	"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu",
	"usr/lib/x86_64-linux-gnu/systemd",
	plan.JavaHome[1:] + "/lib", plan.JavaHome[1:] + "/lib/server",
	"lib64", "usr/lib64", "lib", "usr/lib",
}

// dynamics is what a program or a shared library asks of the loader.
type dynamics struct {
	interpreter string   // the loader's path; "": none
	needed      []string // names of shared libraries
	runpath     []string // where to look for them first; $ORIGIN is its own folder
}

var errNoELF = errors.New("it is no ELF file")

// readDynamics reads what a file asks of the loader: programs of strangers are not run for it, as ldd does.
func readDynamics(file string) (dynamics, error) {
	d := dynamics{}
	f, err := elf.Open(file)
	if _, bad := errors.AsType[*elf.FormatError](err); bad || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return d, errNoELF
	}
	if err != nil {
		return d, err
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 || f.Class != elf.ELFCLASS64 || f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return d, exit.New(exit.Usage, "bring one for x86-64", "%s is for %s, and the guest's processor is x86-64",
			file, strings.TrimPrefix(f.Machine.String(), "EM_"))
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(p.Open())
			if err != nil {
				return d, fmt.Errorf("%s: %w", file, err)
			}
			d.interpreter = strings.TrimRight(string(name), "\x00")
		}
	}
	if d.needed, err = f.ImportedLibraries(); err != nil {
		return d, fmt.Errorf("%s: %w", file, err)
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		paths, err := f.DynString(tag)
		if err != nil {
			return d, fmt.Errorf("%s: %w", file, err)
		}
		for _, p := range paths {
			d.runpath = append(d.runpath, strings.Split(p, ":")...)
		}
	}
	return d, nil
}

// place is a file's path in the guest, without the leading slash, and on this host.
type place struct{ guest, host string }

// libraryClosure is what a program below root needs to start, itself and the loader included: paths in the guest, and on
// this host. missing are the names of those that are not there.
func libraryClosure(root, program string) (files map[string]string, missing []string, err error) {
	return closureOf(root, place{program, filepath.Join(root, program)})
}

// closureOf is the same for a program that has another path in the guest than here.
func closureOf(root string, program place) (files map[string]string, missing []string, err error) {
	files = map[string]string{program.guest: program.host}
	seen := map[string]bool{}
	for queue := []place{program}; len(queue) > 0; queue = queue[1:] {
		d, err := readDynamics(queue[0].host)
		if err != nil {
			return nil, nil, err
		}
		if d.interpreter != "" {
			// By its name: a package's link to its loader is absolute, and would lead to this host's.
			d.needed = append(d.needed, d.interpreter)
		}
		for _, name := range d.needed {
			if seen[name] {
				continue
			}
			seen[name] = true
			found, ok := findLibrary(root, name, lookedIn(root, queue[0], d.runpath))
			if !ok {
				missing = append(missing, name)
				continue
			}
			if files[found.guest] == "" {
				files[found.guest] = found.host
				queue = append(queue, found)
			}
		}
	}
	return files, missing, nil
}

// lookedIn are the folders in which the loader looks for what a file needs.
func lookedIn(root string, of place, runpath []string) []place {
	var dirs []place
	for _, dir := range runpath {
		after, own := strings.CutPrefix(strings.ReplaceAll(dir, "${ORIGIN}", "$ORIGIN"), "$ORIGIN")
		switch {
		case own:
			dirs = append(dirs, place{filepath.Join(filepath.Dir(of.guest), after), filepath.Join(filepath.Dir(of.host), after)})
		case filepath.IsAbs(dir):
			dirs = append(dirs, place{dir[1:], filepath.Join(root, dir)})
		}
	}
	for _, dir := range libraryDirs {
		dirs = append(dirs, place{dir, filepath.Join(root, dir)})
	}
	return dirs
}

func findLibrary(root, name string, dirs []place) (place, bool) {
	for _, dir := range dirs {
		found := place{filepath.Join(dir.guest, filepath.Base(name)), filepath.Join(dir.host, filepath.Base(name))}
		if _, err := os.Stat(found.host); err == nil {
			return found, true
		}
	}
	if !filepath.IsAbs(name) {
		return place{}, false
	}
	found := place{name[1:], filepath.Join(root, name)}
	_, err := os.Stat(found.host)
	return found, err == nil
}
