package kernels

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
	"temper.dev/temper/lab/cache"
)

// Modules are the paths of a kernel's modules by name, ready for insmod, and fetched where they are not cached. busybox
// unpacks them.
func Modules(ctx context.Context, c cache.Folder, k Kernel, names []string, busybox string, notify func(string)) (map[string]string, error) {
	dir := filepath.Join(folder(c, k.Release), "modules")
	modules := map[string]string{}
	for _, name := range names {
		modules[name] = filepath.Join(dir, name+".ko")
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := os.Stat(modules[name])
		return err == nil
	})
	if len(missing) == 0 {
		return modules, nil
	}
	notify("fetching modules of kernel " + k.Release + ", once")
	return modules, unpackModules(ctx, c, k.Release, dir, missing, busybox)
}

// unpackModules adds modules to those that are cached.
func unpackModules(ctx context.Context, c cache.Folder, release, to string, names []string, busybox string) error {
	kernels, problems := Available(ctx, c)
	i := slices.IndexFunc(kernels, func(k Kernel) bool { return k.Release == release && k.Suite != "" })
	switch {
	case i < 0 && len(problems) > 0:
		return problems[0]
	case i < 0:
		return exit.New(exit.Failed, "fetch a newer one with 'temper-lab kernels --fetch'", "the modules of kernel %s are not cached, and the archive no longer has it", release)
	}
	unlock, err := c.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.MkdirAll(to, 0o755); err != nil {
		return c.Explain(err)
	}
	return fromPackage(ctx, c, kernels[i], func(dir string) error {
		for _, name := range names {
			if err := unpackModule(ctx, dir, name, filepath.Join(to, name+".ko"), busybox); err != nil {
				return c.Explain(err)
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
