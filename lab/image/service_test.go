package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/userland"
	"temper.dev/temper/lab/workload"
)

// put writes an executable file, and the folders above it.
func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// ownFiles lists the files of a whole package where package userland has unpacked it.
const ownFiles = ".own"

// packaged is a cache that has the package "shop", of a script, a link to it, and a setting, and "market", of another script
// of that name.
func packaged(t *testing.T) cache.Folder {
	c := cache.Folder(t.TempDir())
	root := c.Path("userland", userland.Suite+"-whole-shop")
	put(t, filepath.Join(root, "usr/sbin/shopd"), "#!/bin/sh\n")
	put(t, filepath.Join(root, "etc/shop.conf"), "")
	put(t, filepath.Join(root, "usr/lib/shop/bin/engine"), "#!/bin/sh\n")
	put(t, filepath.Join(root, ownFiles), "usr/sbin/shopd\nusr/bin/shop\nusr/bin/other\netc/shop.conf\nusr/lib/shop/bin/engine")
	put(t, filepath.Join(root, "usr/bin/.keep"), "")
	for link, target := range map[string]string{"usr/bin/shop": "../sbin/shopd", "usr/bin/other": "of-another-package"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(c.Path("userland", userland.Suite+"-whole-market"), "usr/bin/shopd"), "#!/bin/sh\n")
	put(t, filepath.Join(c.Path("userland", userland.Suite+"-whole-market"), ownFiles), "usr/bin/shopd")
	put(t, filepath.Join(c.Path("userland", userland.Suite+"-whole-shops"), ownFiles), "") // depends on others, and has no file
	return c
}

func TestServicesTravel(t *testing.T) {
	dir := application(t)
	put(t, filepath.Join(dir, "page"), "x")
	at := workload.Place{File: filepath.Join(dir, "f.yaml"), Line: 1, Column: 2}
	for name, test := range map[string]struct {
		service workload.Program
		program string
		there   []string
	}{
		"a program beside the file": {workload.Program{Command: []string{"bin/program"}}, "/srv/mine/program",
			[]string{"srv/mine/program", "srv/lib/libown.so.1", "lib/x86_64-linux-gnu/libc.so.6"}},
		"a program of PATH": {workload.Program{Command: []string{"gcc"}}, "/srv/mine/gcc", []string{"srv/mine/gcc", "lib/x86_64-linux-gnu/libc.so.6"}},
		"a folder": {workload.Program{Folder: dir, Command: []string{"bin/program"}}, "/srv/mine/bin/program",
			[]string{"srv/mine/bin/program", "srv/mine/lib/libown.so.1", "srv/mine/page"}},
		"a package":                     {workload.Program{Packages: []string{"shop"}, Command: []string{"shopd"}}, "/usr/sbin/shopd", []string{"usr/sbin/shopd", "etc/shop.conf"}},
		"several packages":              {workload.Program{Packages: []string{"shops", "shop", "market"}, Command: []string{"shopd"}}, "/usr/sbin/shopd", []string{"usr/sbin/shopd", "etc/shop.conf"}},
		"a package's link":              {workload.Program{Packages: []string{"shop"}, Command: []string{"/usr/bin/shop"}}, "/usr/bin/shop", []string{"usr/bin/shop"}},
		"a package's program elsewhere": {workload.Program{Packages: []string{"shop"}, Command: []string{"/usr/lib/shop/bin/engine"}}, "/usr/lib/shop/bin/engine", []string{"usr/lib/shop/bin/engine"}},
		"the guest's shell":             {workload.Program{Packages: []string{"shop"}, Command: []string{"sh"}}, "/bin/sh", []string{"usr/sbin/shopd"}},
		"files and folders": {workload.Program{Command: []string{"bin/program"}, Folders: []string{"/var/lib/x"},
			Files: []workload.Item{{Guest: "/etc/page", Host: filepath.Join(dir, "page")}, {Guest: "/etc/text", Text: "y"}}},
			"/srv/mine/program", []string{"var/lib/x", "etc/page", "etc/text"}},
	} {
		test.service.Name, test.service.At = "mine", at
		a := Archive{}
		program, err := a.AddProgram(t.Context(), packaged(t), test.service, func(string) {})
		if err != nil || program != test.program {
			t.Errorf("%s: program %q, want %q; %v", name, program, test.program, err)
		}
		for _, file := range append(test.there, "srv/mine") {
			if _, there := a[file]; !there {
				t.Errorf("%s: %s is not in the guest", name, file)
			}
		}
	}
}

func TestServicesThatCannotTravel(t *testing.T) {
	dir := application(t)
	foreign(t, filepath.Join(dir, "bin/program"), filepath.Join(dir, "arm"))
	put(t, filepath.Join(dir, "page"), "")
	if err := os.Chmod(filepath.Join(dir, "page"), 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "script"), "#!/usr/bin/ruby -w\n")
	file := filepath.Join(dir, "f.yaml")
	linked := t.TempDir()
	if err := os.Symlink("none", filepath.Join(linked, "link")); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		service workload.Program
		want    string
		status  int
	}{
		"no such program": {workload.Program{Command: []string{"bin/none"}}, file + `:4:2: no program "bin/none": stat ` + dir +
			`/bin/none: no such file or directory; write a path of this host, or name the Debian package that has it`, exit.NotFound},
		"not in PATH": {workload.Program{Command: []string{"no-such-server"}}, file + `:4:2: no program "no-such-server": exec: "no-such-server": ` +
			`executable file not found in $PATH; write a path of this host, or name the Debian package that has it`, exit.NotFound},
		"not in the folder": {workload.Program{Folder: dir, Command: []string{"bin"}}, file + `:4:2: ` + dir + ` has no program "bin"; write its path within the folder`, exit.NotFound},
		"not in the package": {workload.Program{Packages: []string{"shop"}, Command: []string{"shopx"}},
			file + `:4:2: package shop has no program "shopx"; choose from shopd, shop, other, or name the package that has it, which is often one that this one depends on`, exit.NotFound},
		"in no package": {workload.Program{Packages: []string{"shops"}, Command: []string{"shopd"}},
			file + `:4:2: package shops has no program "shopd"; it has no program at all; name the package that has it, which is often one that this one depends on`, exit.NotFound},
		"a link to what is not there": {workload.Program{Packages: []string{"shop"}, Command: []string{"other"}},
			file + `:4:2: other is a link to /usr/bin/of-another-package, which is not there; ` +
				`name the package that has it, too: package: [shop, ...]`, exit.NotFound},
		"a link of a folder": {workload.Program{Folder: linked, Command: []string{"link"}},
			file + ":4:2: link is a link to /srv/mine/none, which is not there; bring that, too", exit.NotFound},
		"no such folder": {workload.Program{Folder: dir + "/none", Command: []string{"x"}},
			file + ":4:2: service mine: no file or folder " + dir + "/none; write a path from the file's folder on", exit.NotFound},
		"another processor": {workload.Program{Command: []string{"./arm"}}, dir + "/arm is for AARCH64, and the guest's processor is x86-64; bring one for x86-64", exit.Usage},
		"not executable":    {workload.Program{Command: []string{"./page"}}, file + ":4:2: ./page is not executable; make it so with chmod +x", exit.Usage},
		"a script for what is not there": {workload.Program{Command: []string{"./script"}},
			file + ":4:2: ./script is a script for /usr/bin/ruby, which the guest does not have; bring it: under files, or as the package", exit.NotFound},
		"a file that is not there": {workload.Program{Command: []string{"bin/program"}, Files: []workload.Item{{Guest: "/x", Host: dir + "/none"}}},
			file + ":4:2: service mine: no file or folder " + dir + "/none; write a path from the file's folder on", exit.NotFound},
	} {
		test.service.Name, test.service.At = "mine", workload.Place{File: file, Line: 4, Column: 2}
		_, err := Archive{}.AddProgram(t.Context(), packaged(t), test.service, func(string) {})
		if err == nil || err.Error() != test.want || exit.StatusOf(err) != test.status {
			t.Errorf("%s:\ngot  %v (status %d)\nwant %s", name, err, exit.StatusOf(err), test.want)
		}
	}
}

// Who interrupts the fetch of a package is not told to name another one.
func TestServicesAreInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	s := workload.Program{Name: "mine", Packages: []string{"shop"}, Command: []string{"shopd"}}
	if _, err := (Archive{}).AddProgram(ctx, cache.Folder(t.TempDir()), s, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
