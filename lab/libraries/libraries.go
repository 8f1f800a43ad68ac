// Package libraries finds what a program needs to start: its loader, and the shared libraries that the loader would look for.
// A guest has no package manager, so each program has to come with them. ELF files are read for it, and nothing is run.
//
// It looks below one folder, a host's root or unpacked packages, and fetches and copies nothing.
package libraries

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

// Loader is the name of the program that starts those with shared libraries.
const Loader = "ld-linux-x86-64.so.2"

// libraryDirs are where Debian keeps shared libraries, and where the loader looks unasked; systemd's and Java's, whose
// programs say where to look; and where loaders of other distributions look.
var libraryDirs = []string{
	"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu",
	"usr/lib/x86_64-linux-gnu/systemd",
	plan.JavaHome[1:] + "/lib", plan.JavaHome[1:] + "/lib/server",
	"lib64", "usr/lib64", "lib", "usr/lib",
}

// Needs is what a program or a shared library asks of the loader.
type Needs struct {
	Interpreter string   // the loader's path; "": none
	needed      []string // names of shared libraries
	runpath     []string // where to look for them first; $ORIGIN is its own folder
}

// ErrNoELF is of a file that is none: a script, or data.
var ErrNoELF = errors.New("it is no ELF file")

// Read reads what a file asks of the loader: programs of strangers are not run for it, as ldd does.
func Read(file string) (Needs, error) {
	d := Needs{}
	f, err := elf.Open(file)
	if _, bad := errors.AsType[*elf.FormatError](err); bad || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return d, ErrNoELF
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
			d.Interpreter = strings.TrimRight(string(name), "\x00")
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

// Place is a file's path in the guest, without the leading slash, and on this host.
type Place struct{ Guest, Host string }

// Closure is what a program below root needs to start, itself and the loader included: paths in the guest, and on
// this host. missing are the names of those that are not there.
func Closure(root, program string) (files map[string]string, missing []string, err error) {
	return ClosureOf(root, Place{program, filepath.Join(root, program)})
}

// ClosureOf is the same for a program that has another path in the guest than here.
func ClosureOf(root string, program Place) (files map[string]string, missing []string, err error) {
	files = map[string]string{program.Guest: program.Host}
	seen := map[string]bool{}
	for queue := []Place{program}; len(queue) > 0; queue = queue[1:] {
		d, err := Read(queue[0].Host)
		if err != nil {
			return nil, nil, err
		}
		if d.Interpreter != "" {
			// By its name: a package's link to its loader is absolute, and would lead to this host's.
			d.needed = append(d.needed, d.Interpreter)
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
			if files[found.Guest] == "" {
				files[found.Guest] = found.Host
				queue = append(queue, found)
			}
		}
	}
	return files, missing, nil
}

// lookedIn are the folders in which the loader looks for what a file needs.
func lookedIn(root string, of Place, runpath []string) []Place {
	var dirs []Place
	for _, dir := range runpath {
		after, own := strings.CutPrefix(strings.ReplaceAll(dir, "${ORIGIN}", "$ORIGIN"), "$ORIGIN")
		switch {
		case own:
			dirs = append(dirs, Place{filepath.Join(filepath.Dir(of.Guest), after), filepath.Join(filepath.Dir(of.Host), after)})
		case filepath.IsAbs(dir):
			dirs = append(dirs, Place{dir[1:], filepath.Join(root, dir)})
		}
	}
	for _, dir := range libraryDirs {
		dirs = append(dirs, Place{dir, filepath.Join(root, dir)})
	}
	return dirs
}

func findLibrary(root, name string, dirs []Place) (Place, bool) {
	for _, dir := range dirs {
		found := Place{filepath.Join(dir.Guest, filepath.Base(name)), filepath.Join(dir.Host, filepath.Base(name))}
		if _, err := os.Stat(found.Host); err == nil {
			return found, true
		}
	}
	if !filepath.IsAbs(name) {
		return Place{}, false
	}
	found := Place{name[1:], filepath.Join(root, name)}
	_, err := os.Stat(found.Host)
	return found, err == nil
}
