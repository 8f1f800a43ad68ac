// Package nodeparts has what of the distribution a virtual machine with a disk and a network boots, which the lab's guest has not:
// tests of a whole node make one, beside their own programs.
//
// It fetches and finds; whoever makes the machine puts the files in their places.
package nodeparts

import (
	"context"
	"path/filepath"

	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/kernels"
	"temper.dev/temper/lab/libraries"
	"temper.dev/temper/lab/userland"
)

// Parts are what it boots.
type Parts struct {
	Vmlinuz string
	Busybox string            // static
	Modules map[string]string // paths of kernel modules by name, ready for insmod
}

// Fetch fetches them, once, for the newest cached kernel of a series.
func Fetch(ctx context.Context, c cache.Folder, series string, modules []string, notify func(string)) (*Parts, error) {
	k, err := kernels.Find(ctx, c, series, notify)
	if err != nil {
		return nil, err
	}
	unlock, err := c.Lock()
	if err != nil {
		return nil, err
	}
	root, err := userland.Base(ctx, c, notify)
	unlock()
	if err != nil {
		return nil, err
	}
	p := &Parts{Vmlinuz: kernels.Vmlinuz(c, k), Busybox: filepath.Join(root, userland.Busybox)}
	p.Modules, err = kernels.Modules(ctx, c, k, modules, p.Busybox, notify)
	return p, err
}

// Programs are programs of a package and the libraries that they need, fetched once: the path of each file here by the one on
// the node.
func Programs(ctx context.Context, c cache.Folder, notify func(string), name string, programs ...string) (map[string]string, error) {
	return files(ctx, c, notify, name, programs)
}

// Systemd is the same of systemd.
func Systemd(ctx context.Context, c cache.Folder, notify func(string)) (map[string]string, error) {
	return Programs(ctx, c, notify, "systemd", "lib/systemd/systemd")
}

// AppArmor is the same of what loads AppArmor's profiles, and of what profiles include.
func AppArmor(ctx context.Context, c cache.Folder, notify func(string)) (map[string]string, error) {
	return files(ctx, c, notify, "apparmor", []string{"sbin/apparmor_parser"}, "etc/apparmor", "usr/share/apparmor-features", "etc/apparmor.d/abstractions", "etc/apparmor.d/tunables", "etc/apparmor.d/abi")
}

// files are those of a package, with the loader where programs look for it.
func files(ctx context.Context, c cache.Folder, notify func(string), name string, programs []string, data ...string) (map[string]string, error) {
	files, err := userland.Files(ctx, c, notify, name, programs, data)
	if err != nil {
		return nil, err
	}
	for place, file := range files {
		if filepath.Base(place) == libraries.Loader {
			files["lib64/"+libraries.Loader] = file
		}
	}
	return files, nil
}
