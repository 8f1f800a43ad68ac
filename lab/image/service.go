package image

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/libraries"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/userland"
	"temper.dev/temper/lab/workload"
)

// AddProgram adds what a user's program needs, and returns where its program is in the guest.
func (a Archive) AddProgram(ctx context.Context, c cache.Folder, p workload.Program, notify func(string)) (program string, err error) {
	home := path.Join(plan.ServicesFolder, p.Name)
	a.dir(inArchive(home))
	switch {
	case len(p.Packages) > 0:
		program, err = a.addPackages(ctx, c, p, notify)
	case p.Folder != "":
		program, err = a.addFolder(home, p)
	default:
		program, err = a.addOwn(home, p)
	}
	if err != nil {
		return "", err
	}
	for _, folder := range p.Folders {
		a.dir(inArchive(folder))
	}
	for _, item := range p.Files {
		if item.Host == "" {
			a.Data(item.Guest, []byte(item.Text))
		} else if err := a.bringOf(p, item.Guest, item.Host); err != nil {
			return "", err
		}
	}
	return program, a.checkProgram(p, program)
}

// addFolder adds a folder of this host, in which the program is.
func (a Archive) addFolder(home string, p workload.Program) (program string, err error) {
	if err := a.bringOf(p, home, p.Folder); err != nil {
		return "", err
	}
	program = path.Join(home, p.Command[0])
	if n, there := a[inArchive(program)]; !there || n.host == "" && n.target == "" {
		return "", p.At.Fail(exit.NotFound, "write its path within the folder", "%s has no program %q", p.Folder, p.Command[0])
	}
	return program, nil
}

// bringOf brings what a program's user names, and says where it names what is not there.
func (a Archive) bringOf(p workload.Program, guest, host string) error {
	err := a.Bring(guest, host)
	if errors.Is(err, fs.ErrNotExist) {
		return p.At.Fail(exit.NotFound, "write a path from the file's folder on", "%s: no file or folder %s", p.Who(), host)
	}
	return err
}

// addOwn adds a program of this host: a path from the file's folder on, or a name to look up in PATH.
func (a Archive) addOwn(home string, p workload.Program) (program string, err error) {
	host := p.Command[0]
	if strings.Contains(host, "/") {
		if !filepath.IsAbs(host) {
			host = filepath.Join(filepath.Dir(p.At.File), host)
		}
		_, err = os.Stat(host)
	} else {
		host, err = exec.LookPath(host)
	}
	if err != nil {
		return "", p.At.Fail(exit.NotFound, "write a path of this host, or name the Debian package that has it", "no program %q: %v", p.Command[0], err)
	}
	program = path.Join(home, filepath.Base(host))
	return program, a.Bring(program, host)
}

// follow goes along links from a path in the guest, and says where they end, and whether something is there.
func (a Archive) follow(at string) (end string, whole bool) {
	const most = 8
	for range most {
		n, there := a[inArchive(at)]
		switch {
		case !there:
			return at, false
		case n.target == "":
			return at, true
		case path.IsAbs(n.target):
			at = n.target
		default:
			at = path.Join(path.Dir(at), n.target)
		}
	}
	return at, false
}

// checkProgram refuses what is not executable, and a script whose interpreter the guest lacks. Of its own it has a shell.
func (a Archive) checkProgram(p workload.Program, program string) error {
	n, there := a[inArchive(program)]
	if end, whole := a.follow(program); there && !whole {
		cure := "bring that, too"
		if len(p.Packages) > 0 {
			cure = "name the package that has it, too: package: [" + strings.Join(p.Packages, ", ") + ", ...]"
		}
		return p.At.Fail(exit.NotFound, cure,
			"%s is a link to %s, which is not there", p.Command[0], end)
	}
	if there && n.target == "" && n.mode&0o111 == 0 {
		return p.At.Fail(exit.Usage, "make it so with chmod +x", "%s is not executable", p.Command[0])
	}
	text, err := os.ReadFile(n.host)
	if err != nil || !bytes.HasPrefix(text, []byte("#!")) { // a link, or no script
		return nil
	}
	line, _, _ := strings.Cut(string(text[2:]), "\n")
	words := strings.Fields(line)
	if len(words) == 0 || words[0] == "/bin/sh" {
		return nil
	}
	if _, there := a[inArchive(words[0])]; !there {
		return p.At.Fail(exit.NotFound, "bring it: under files, or as the package", "%s is a script for %s, which the guest does not have", p.Command[0], words[0])
	}
	return nil
}

// binDirs are where packages have programs.
var binDirs = []string{"usr/bin", "usr/sbin", "bin", "sbin", "usr/games"}

// addPackages adds packages of Debian, their programs with what they need to start.
func (a Archive) addPackages(ctx context.Context, c cache.Folder, p workload.Program, notify func(string)) (program string, err error) {
	var programs []string
	for _, name := range p.Packages {
		root, own, err := userland.Whole(ctx, c, notify, name)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			return "", p.At.Fail(exit.StatusOf(err), "name a package of Debian "+userland.Suite, "package %s: %v", name, err)
		}
		if err := a.addPackaged(root, own); err != nil {
			return "", err
		}
		for _, file := range own {
			named := slices.Contains(binDirs, path.Dir(file))
			if named {
				programs = append(programs, path.Base(file))
			}
			if program == "" && (named && path.Base(file) == p.Command[0] || "/"+file == p.Command[0]) {
				program = "/" + file
			}
		}
	}
	switch {
	case program != "":
		return program, nil
	case p.Command[0] == "sh": // the guest's own, to prepare something first
		return "/bin/sh", nil
	}
	cure := "name the package that has it, which is often one that this one depends on"
	if len(programs) == 0 {
		cure = "it has no program at all; " + cure
	} else {
		cure = "choose from " + strings.Join(programs, ", ") + ", or " + cure
	}
	return "", p.At.Fail(exit.NotFound, cure, "package %s has no program %q", strings.Join(p.Packages, ", "), p.Command[0])
}

// addPackaged adds files of a package that was unpacked below root, and what the programs among them need.
func (a Archive) addPackaged(root string, own []string) error {
	for _, file := range own {
		host := filepath.Join(root, file)
		info, err := os.Lstat(host)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(host)
			if err != nil {
				return err
			}
			a.link(file, target)
			continue
		}
		a.file(file, host, info.Mode())
		if _, err := libraries.Read(host); err != nil { // data, or for another processor
			continue
		}
		needed, _, err := libraries.Closure(root, file)
		if err != nil {
			return err
		}
		for guest, host := range needed {
			a.Program(guest, host)
		}
	}
	return nil
}
