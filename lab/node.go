package lab

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/exit"
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

// unpackModules adds modules to those that are cached.
func unpackModules(ctx context.Context, c Cache, release, to string, names []string, busybox string) error {
	kernels, problems := c.AvailableKernels(ctx)
	i := slices.IndexFunc(kernels, func(k Kernel) bool { return k.Release == release && k.Suite != "" })
	switch {
	case i < 0 && len(problems) > 0:
		return problems[0]
	case i < 0:
		return exit.New(exit.Failed, "fetch a newer one with 'temper-lab kernels --fetch'", "the modules of kernel %s are not cached, and the archive no longer has it", release)
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.MkdirAll(to, 0o755); err != nil {
		return c.explain(err)
	}
	return c.fromPackage(ctx, kernels[i], func(dir string) error {
		for _, name := range names {
			if err := unpackModule(ctx, dir, name, filepath.Join(to, name+".ko"), busybox); err != nil {
				return c.explain(err)
			}
		}
		return nil
	})
}

// unpackModule looks below dir for a module by its name alone: a module's place changes from series to series.
func unpackModule(ctx context.Context, dir, name, to, busybox string) error {
	var found string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.TrimSuffix(entry.Name(), ".xz") == name+".ko" {
			found = path
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		return err
	}
	if found == "" {
		return fmt.Errorf("the kernel's package holds no module %s", name)
	}
	data, err := os.ReadFile(found)
	if err == nil && strings.HasSuffix(found, ".xz") {
		data, err = exec.CommandContext(ctx, busybox, "unxz", "-c", found).Output()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", found, err)
	}
	if err := os.WriteFile(to+".part", data, 0o644); err != nil {
		return err
	}
	return os.Rename(to+".part", to)
}
