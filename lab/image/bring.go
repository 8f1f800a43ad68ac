package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/libraries"
)

// Bring adds a file or a folder of this host, and what the programs in it need to start.
func (a Archive) Bring(guest, host string) error {
	info, err := os.Stat(host)
	switch {
	case err != nil:
		return exit.New(exit.Usage, "", "cannot put a file into the guest: %w", err)
	case info.IsDir():
		return a.bringFolder(guest, host)
	case !info.Mode().IsRegular():
		return exit.New(exit.Usage, "", "cannot put %s into the guest: it is neither a file nor a folder", host)
	}
	a.file(guest, host, info.Mode())
	var carried map[string]bool
	if info.Mode()&0o111 == 0 { // data, as a BPF object is
		carried = map[string]bool{}
	}
	return a.bringLibraries(libraries.Place{Guest: inArchive(guest), Host: host}, carried)
}

func (a Archive) bringFolder(guest, host string) error {
	a.dir(inArchive(guest))
	names := map[string]bool{}
	var programs []libraries.Place
	err := filepath.WalkDir(host, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(host, file)
		if err != nil {
			return err
		}
		in := libraries.Place{Guest: inArchive(filepath.Join(guest, below)), Host: file}
		switch mode := entry.Type(); {
		case mode.IsDir():
			a.dir(in.Guest)
		case mode&fs.ModeSymlink != 0:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			names[entry.Name()] = true
			a.link(in.Guest, target)
		case mode.IsRegular():
			info, err := entry.Info()
			if err != nil {
				return err
			}
			names[entry.Name()] = true
			a.file(in.Guest, file, info.Mode())
			programs = append(programs, in)
		default:
			return exit.New(exit.Usage, "leave it out of the folder", "cannot put %s into the guest: it is no file, folder or link", file)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := a.bringLibraries(p, names); err != nil {
			return err
		}
	}
	return nil
}

// bringLibraries adds what a program or a library needs, if the file is one. Names of carried are those of files that come
// with it: whoever brings them says where they are (LD_LIBRARY_PATH). nil: the file is to run, and is refused where it cannot.
func (a Archive) bringLibraries(program libraries.Place, carried map[string]bool) error {
	d, err := libraries.Read(program.Host)
	if errors.Is(err, libraries.ErrNoELF) { // a script, or data
		return nil
	}
	if _, foreign := errors.AsType[*exit.Error](err); foreign && carried != nil {
		return nil
	}
	if err != nil {
		return err
	}
	files, missing, err := libraries.ClosureOf("/", program)
	if err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(name string) bool { return carried[filepath.Base(name)] })
	if len(missing) > 0 && d.Interpreter != "" { // a library may be a plug-in that nobody loads
		return exit.New(exit.Usage, "install what has it, or link the program statically",
			"%s needs %s, which this host does not have", program.Host, strings.Join(missing, ", "))
	}
	for guest, host := range files {
		if guest != program.Guest {
			a.Program(guest, host)
		}
	}
	return nil
}
