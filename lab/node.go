package lab

import (
	"context"
	"os"
	"path/filepath"
	"slices"
)

// NodeParts are what of the distribution a virtual machine with a disk and a network boots, which the guest has not.
type NodeParts struct {
	Vmlinuz string
	Busybox string            // static
	Modules map[string]string // paths of kernel modules by name, ready for insmod
}

// FetchNodeParts fetches them, once, for the newest cached kernel of a series.
func FetchNodeParts(ctx context.Context, c Cache, series string, modules []string, notify func(string)) (*NodeParts, error) {
	k, err := c.findKernel(ctx, series, notify)
	if err != nil {
		return nil, err
	}
	unlock, err := c.lock()
	if err != nil {
		return nil, err
	}
	userland, err := c.userland(ctx, notify)
	unlock()
	if err != nil {
		return nil, err
	}
	p := &NodeParts{Vmlinuz: c.Vmlinuz(k), Busybox: filepath.Join(userland, shellBinary), Modules: map[string]string{}}
	dir := filepath.Join(c.kernelDir(k.Release), "modules")
	for _, name := range modules {
		p.Modules[name] = filepath.Join(dir, name+".ko")
	}
	missing := slices.DeleteFunc(slices.Clone(modules), func(name string) bool {
		_, err := os.Stat(p.Modules[name])
		return err == nil
	})
	if len(missing) == 0 {
		return p, nil
	}
	notify("fetching modules of kernel " + k.Release + ", once")
	return p, unpackModules(ctx, c, k.Release, dir, missing, p.Busybox)
}

// FetchPrograms fetches programs of a package and the libraries that they need, once. It returns the path of each file here by
// the one on the node.
func FetchPrograms(ctx context.Context, c Cache, notify func(string), name string, programs ...string) (map[string]string, error) {
	return c.nodeFiles(ctx, notify, name, programs)
}

// FetchSystemd does that with systemd.
func FetchSystemd(ctx context.Context, c Cache, notify func(string)) (map[string]string, error) {
	return FetchPrograms(ctx, c, notify, "systemd", "lib/systemd/systemd")
}

// FetchAppArmor does it with what loads AppArmor's profiles, and fetches what profiles include.
func FetchAppArmor(ctx context.Context, c Cache, notify func(string)) (map[string]string, error) {
	return c.nodeFiles(ctx, notify, "apparmor", []string{"sbin/apparmor_parser"}, "etc/apparmor", "usr/share/apparmor-features", "etc/apparmor.d/abstractions", "etc/apparmor.d/tunables", "etc/apparmor.d/abi")
}

// nodeFiles are those of a package, with the loader where programs look for it.
func (c Cache) nodeFiles(ctx context.Context, notify func(string), name string, programs []string, data ...string) (map[string]string, error) {
	files, err := c.packageFiles(ctx, notify, name, programs, data)
	if err != nil {
		return nil, err
	}
	for place, file := range files {
		if filepath.Base(place) == loaderName {
			files["lib64/"+loaderName] = file
		}
	}
	return files, nil
}
