package lab

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The guest's userland is Debian 12's, whatever the host: the service that is measured must be the
// same program everywhere.
const (
	userlandSuite = "bookworm"
	serviceBinary = "usr/bin/memcached"
	shellBinary   = "bin/busybox"
	loaderName    = "ld-linux-x86-64.so.2"
)

// userland returns the folder that holds the distribution's part of every guest, as unpacked
// packages, and fetches it where it is not cached.
func (c Cache) userland(ctx context.Context, notify func(string)) (string, error) {
	return c.unpacked(ctx, userlandSuite, "the guest's programs", notify, func(s *suite, dir string) error {
		if err := s.download(ctx, dir, "busybox-static"); err != nil {
			return err
		}
		return s.downloadWithLibraries(ctx, dir, "memcached", serviceBinary)
	})
}

// packages does the same for one service: a package, and the libraries that its programs need.
func (c Cache) packages(ctx context.Context, notify func(string), name string, programs ...string) (string, error) {
	unlock, err := c.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	return c.unpacked(ctx, userlandSuite+"-"+name, name, notify, func(s *suite, dir string) error {
		return s.downloadWithLibraries(ctx, dir, name, programs...)
	})
}

// ownFiles lists, in a folder of packages, the files of the one that was asked for.
const ownFiles = ".own"

// wholePackage returns a folder with a package and the libraries that its programs need, and the package's own files that
// are of use to a program.
func (c Cache) wholePackage(ctx context.Context, notify func(string), name string) (root string, own []string, err error) {
	unlock, err := c.lock()
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	root, err = c.unpacked(ctx, userlandSuite+"-whole-"+name, name, notify, func(s *suite, dir string) error {
		if err := s.download(ctx, dir, name); err != nil {
			return err
		}
		own, err := filesBelow(dir)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, ownFiles), []byte(strings.Join(own, "\n")), 0o644); err != nil {
			return err
		}
		return s.downloadWithLibraries(ctx, dir, name, programsAmong(dir, own)...)
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
		if d, err := readDynamics(filepath.Join(dir, file)); err == nil && d.interpreter != "" {
			programs = append(programs, file)
		}
	}
	return programs
}

// unpacked returns a folder of packages, which download fills where it is not cached. The cache is locked.
func (c Cache) unpacked(ctx context.Context, folder, what string, notify func(string), download func(*suite, string) error) (string, error) {
	dir := c.path("userland", folder)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	notify("fetching " + what + ", once")
	s, err := openSuite(ctx, c, userlandSuite)
	if err != nil {
		return "", err
	}
	if err := s.update(ctx); err != nil {
		return "", err
	}
	temp, err := c.temp()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := download(s, temp); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", c.explain(err)
	}
	return dir, c.explain(os.Rename(temp, dir))
}

// downloadWithLibraries unpacks a package into root, and then the libraries it depends on, level by
// level, until the loader would find all that its binaries need. Most of what a package depends on
// serves its installation, not its binaries.
func (s *suite) downloadWithLibraries(ctx context.Context, root, name string, binaries ...string) error {
	got := map[string]bool{}
	for level := []string{name}; ; {
		if err := s.download(ctx, root, level...); err != nil {
			return err
		}
		var missing []string
		for _, binary := range binaries {
			_, lacks, err := libraryClosure(root, binary)
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
			deps, err := s.depends(ctx, p)
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

// packageFiles are programs of a package with their libraries, and data of it: files, or folders but for what is there for
// compilers and readers.
func (c Cache) packageFiles(ctx context.Context, notify func(string), name string, programs, data []string) (map[string]string, error) {
	root, err := c.packages(ctx, notify, name, programs...)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, program := range programs {
		needed, _, err := libraryClosure(root, program)
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
