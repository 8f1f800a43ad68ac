//go:build host

// Package host tests the package on a host with systemd, in the lab's guest.
package host

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"temper.dev/temper"
	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/nodeparts"
	"temper.dev/temper/lab/run"
)

// programs are what of the distribution the host has, beside busybox, by package.
var programs = map[string][]string{
	"systemd": {"lib/systemd/systemd", "bin/systemctl"},
	"dpkg":    {"usr/bin/dpkg", "usr/bin/dpkg-deb", "usr/bin/dpkg-query", "usr/bin/dpkg-split"},
	"tar":     {"bin/tar"},
}

// It is installed, put in force, upgraded without a gap, removed and purged; after that the host is as it was found. What it does
// and compares, and prints, is in testdata/trial.
func TestPackageOnAHost(t *testing.T) {
	ctx := t.Context()
	c, err := cache.Default()
	if err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Glob("../../dist/temper_" + temper.Version + "-1_*.deb")
	if err != nil || len(packages) != 1 {
		t.Fatalf("want one package of version %s in dist/, got %v; run 'make packages'", temper.Version, packages)
	}
	files := map[string]string{"/temper.deb": packages[0]}
	for _, name := range []string{"boot", "trial", "trial.service", "default.target"} {
		files["/host/"+name] = filepath.Join("testdata", name)
	}
	for name, list := range programs {
		of, err := nodeparts.Programs(ctx, c, func(what string) { t.Log(what) }, name, list...)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(files, absolute(of))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	status, err := run.Exec(ctx, run.Options{Assets: assets.Folder("../..")}, run.ExecOptions{
		CPUs: 2, Argv: []string{"/bin/sh", "/host/boot"}, Files: files, Deadline: 8 * time.Minute, Output: os.Stdout, Console: "../../build/host-console.log",
	})
	if err != nil || status != 0 {
		t.Fatalf("status %d, %v", status, err)
	}
}

func absolute(files map[string]string) map[string]string {
	to := map[string]string{}
	for place, file := range files {
		to["/"+place] = file
	}
	return to
}
