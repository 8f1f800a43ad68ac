// Package userland has the programs of Debian 12 that guests run, unpacked from their packages and cached, with the libraries
// that they need.
//
// What of it a guest gets, and where, is decided in package image and by who asks for files here.
package userland

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"temper.dev/temper/lab/apt"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/libraries"
)

// The guest's userland is Debian 12's, whatever the host: the service that is measured must be the
// same program everywhere.
const (
	Suite     = "bookworm"
	Memcached = "usr/bin/memcached"
	Busybox   = "bin/busybox" // static
)

// Base returns the folder that holds the distribution's part of every guest, as unpacked packages, for a caller
// that holds the cache's lock. It is fetched where it is not cached.
func Base(ctx context.Context, c cache.Folder, notify func(string)) (string, error) {
	return unpacked(ctx, c, Suite, "the guest's programs", notify, func(s *apt.Suite, dir string) error {
		if err := s.Download(ctx, dir, "busybox-static"); err != nil {
			return err
		}
		return downloadWithLibraries(ctx, s, dir, "memcached", Memcached)
	})
}

// packages does the same for one service: a package, and the libraries that its programs need.
func packages(ctx context.Context, c cache.Folder, notify func(string), name string, programs ...string) (string, error) {
	unlock, err := c.Lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	return unpacked(ctx, c, Suite+"-"+name, name, notify, func(s *apt.Suite, dir string) error {
		return downloadWithLibraries(ctx, s, dir, name, programs...)
	})
}

// ownFiles lists, in a folder of packages, the files of the one that was asked for.
const ownFiles = ".own"

// Whole returns a folder with a package and the libraries that its programs need, and the package's own files that
// are of use to a program.
func Whole(ctx context.Context, c cache.Folder, notify func(string), name string) (root string, own []string, err error) {
	unlock, err := c.Lock()
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	root, err = unpacked(ctx, c, Suite+"-whole-"+name, name, notify, func(s *apt.Suite, dir string) error {
		if err := s.Download(ctx, dir, name); err != nil {
			return err
		}
		own, err := filesBelow(dir)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, ownFiles), []byte(strings.Join(own, "\n")), 0o644); err != nil {
			return err
		}
		return downloadWithLibraries(ctx, s, dir, name, programsAmong(dir, own)...)
	})
	if err != nil {
		return "", nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, ownFiles))
	return root, slices.DeleteFunc(strings.Split(string(text), "\n"), func(file string) bool { return file == "" }), err
}

// filesBelow lists files and links, but for what people read.
func filesBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, file)
		if entry.IsDir() {
			if slices.Contains([]string{"usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian"}, below) {
				return fs.SkipDir
			}
			return err
		}
		files = append(files, below)
		return err
	})
	return files, err
}

// programsAmong are the ELF files that have a loader.
func programsAmong(dir string, files []string) (programs []string) {
	for _, file := range files {
		if d, err := libraries.Read(filepath.Join(dir, file)); err == nil && d.Interpreter != "" {
			programs = append(programs, file)
		}
	}
	return programs
}

// unpacked returns a folder of packages, which download fills where it is not cached. The cache is locked.
func unpacked(ctx context.Context, c cache.Folder, folder, what string, notify func(string), download func(*apt.Suite, string) error) (string, error) {
	dir := c.Path("userland", folder)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	notify("fetching " + what + ", once")
	s, err := apt.Open(ctx, c, Suite)
	if err != nil {
		return "", err
	}
	if err := s.Update(ctx); err != nil {
		return "", err
	}
	temp, err := c.Temp()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := download(s, temp); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", c.Explain(err)
	}
	return dir, c.Explain(os.Rename(temp, dir))
}

// downloadWithLibraries unpacks a package into root, and then the libraries it depends on, level by
// level, until the loader would find all that its binaries need. Most of what a package depends on
// serves its installation, not its binaries.
func downloadWithLibraries(ctx context.Context, s *apt.Suite, root, name string, binaries ...string) error {
	got := map[string]bool{}
	for level := []string{name}; ; {
		if err := s.Download(ctx, root, level...); err != nil {
			return err
		}
		var missing []string
		for _, binary := range binaries {
			_, lacks, err := libraries.Closure(root, binary)
			if err != nil {
				return err
			}
			missing = append(missing, lacks...)
		}
		if len(missing) == 0 {
			return nil
		}
		var next []string
		for _, p := range level {
			got[p] = true
			deps, err := s.Depends(ctx, p)
			if err != nil {
				return err
			}
			next = append(next, deps...)
		}
		slices.Sort(next)
		next = slices.DeleteFunc(slices.Compact(next), func(p string) bool {
			return got[p] || !strings.HasPrefix(p, "lib") && p != "zlib1g"
		})
		if len(next) == 0 {
			return fmt.Errorf("%s needs %s, which no package it depends on has", name, strings.Join(missing, ", "))
		}
		level = next
	}
}

// Files are programs of a package with their libraries, and data of it: files, or folders but for what is there for
// compilers and readers.
func Files(ctx context.Context, c cache.Folder, notify func(string), name string, programs, data []string) (map[string]string, error) {
	root, err := packages(ctx, c, notify, name, programs...)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, program := range programs {
		needed, _, err := libraries.Closure(root, program)
		if err != nil {
			return nil, err
		}
		maps.Copy(files, needed)
	}
	for _, place := range data {
		err := filepath.WalkDir(filepath.Join(root, place), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.Contains(file, "llvm") || strings.Contains(file, "/bitcode/") || strings.Contains(file, "/man/") {
				return err
			}
			place, err := filepath.Rel(root, file)
			files[place] = file
			// Debian keeps what is to be configured in /etc, and links to it.
			if target, linkErr := os.Readlink(file); linkErr == nil && filepath.IsAbs(target) {
				files[place] = filepath.Join(root, target)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
