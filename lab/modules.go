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
