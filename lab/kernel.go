package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/exit"
)

// DefaultSeries is the kernel that the project's figures are stated for.
const DefaultSeries = "6.18"

// kernelSuites hold Debian's newer kernels.
var kernelSuites = []string{"trixie-backports", "forky"}

// Kernel is one that the lab can boot: one of Debian's cloud kernels, or one built from its source.
type Kernel struct {
	Release string `json:"release"` // uname -r: 6.18.15+deb13-cloud-amd64
	Series  string `json:"series"`  // 6.18
	Suite   string `json:"suite,omitempty"`
	Cached  bool   `json:"cached"`

	pkg string
}

var kernelPackage = regexp.MustCompile(`^linux-(?:image|binary)-((\d+\.\d+)\.[^-]+-cloud-amd64)$`)

// kernelsIn picks the kernels from a suite's package names, newest first. From 6.19 on the image is
// in linux-binary, and linux-image only depends on it.
func kernelsIn(suite string, packages []string) []Kernel {
	found := map[string]Kernel{}
	for _, p := range packages {
		m := kernelPackage.FindStringSubmatch(p)
		if m == nil || (found[m[1]].pkg != "" && strings.HasPrefix(p, "linux-image-")) {
			continue
		}
		found[m[1]] = Kernel{Release: m[1], Series: m[2], Suite: suite, pkg: p}
	}
	kernels := make([]Kernel, 0, len(found))
	for _, k := range found {
		kernels = append(kernels, k)
	}
	sortNewestFirst(kernels)
	return kernels
}

func sortNewestFirst(kernels []Kernel) {
	slices.SortFunc(kernels, func(a, b Kernel) int { return compareVersions(b.Release, a.Release) })
}

// matches tells whether want names k: by series ("6.18"), version ("6.18.15") or release.
func (k Kernel) matches(want string) bool {
	rest, ok := strings.CutPrefix(k.Release, want)
	return ok && want != "" && (rest == "" || !isDigit(rest[0]))
}

func (c Cache) kernelDir(release string) string { return c.path("kernels", release) }

// Vmlinuz is the path of a cached kernel.
func (c Cache) Vmlinuz(k Kernel) string { return filepath.Join(c.kernelDir(k.Release), "vmlinuz") }

// cachedKernel is the release of a kernel that the lab runs: Debian's, or one of scripts/upstream.sh, with its variant before it.
var cachedKernel = regexp.MustCompile(`^((?:[a-z]+-)?\d+\.\d+)\.\S+-(?:cloud-amd64|temper)$`)

// CachedKernels lists what needs no network, newest first.
func (c Cache) CachedKernels() ([]Kernel, error) {
	entries, err := os.ReadDir(c.path("kernels"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var kernels []Kernel
	for _, e := range entries {
		if m := cachedKernel.FindStringSubmatch(e.Name()); m != nil {
			kernels = append(kernels, Kernel{Release: m[0], Series: m[1], Cached: true})
		}
	}
	sortNewestFirst(kernels)
	return kernels, nil
}

// AvailableKernels asks the archive anew and adds what is cached, newest first. A suite that cannot
// be read is left out and its error returned beside the others' kernels.
func (c Cache) AvailableKernels(ctx context.Context) (kernels []Kernel, problems []error) {
	unlock, err := c.lock()
	if err != nil {
		return nil, []error{err}
	}
	defer unlock()
	cached, err := c.CachedKernels()
	if err != nil {
		return nil, []error{err}
	}
	for _, name := range kernelSuites {
		found, err := c.kernelsOf(ctx, name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		kernels = append(kernels, found...)
	}
	return mergeCached(kernels, cached), problems
}

// mergeCached marks the kernels that are cached and adds those that the archive has dropped.
func mergeCached(kernels, cached []Kernel) []Kernel {
	for _, k := range cached {
		i := slices.IndexFunc(kernels, func(x Kernel) bool { return x.Release == k.Release })
		if i < 0 {
			kernels = append(kernels, k)
			continue
		}
		kernels[i].Cached = true
	}
	sortNewestFirst(kernels)
	return kernels
}

func (c Cache) kernelsOf(ctx context.Context, name string) ([]Kernel, error) {
	s, err := openSuite(ctx, c, name)
	if err != nil {
		return nil, err
	}
	if err := s.update(ctx); err != nil {
		return nil, err
	}
	packages, err := s.packages(ctx, "linux-")
	return kernelsIn(name, packages), err
}

// findKernel returns the newest cached kernel that want names, and fetches one where none is
// cached. A cached kernel wins over a newer one in the archive, so that figures do not change
// under whoever compares them; FetchKernel moves on.
func (c Cache) findKernel(ctx context.Context, want string, notify func(string)) (Kernel, error) {
	cached, err := c.CachedKernels()
	if err != nil {
		return Kernel{}, err
	}
	if i := slices.IndexFunc(cached, func(k Kernel) bool { return k.matches(want) }); i >= 0 {
		return cached[i], nil
	}
	notify("fetching kernel " + want + ", once")
	return c.FetchKernel(ctx, want)
}

// FetchKernel resolves the newest kernel in the archive that want names, and caches it.
func (c Cache) FetchKernel(ctx context.Context, want string) (Kernel, error) {
	kernels, problems := c.AvailableKernels(ctx)
	i := slices.IndexFunc(kernels, func(k Kernel) bool { return k.matches(want) })
	found := i >= 0 && kernels[i].Suite != ""
	switch {
	case !found && len(problems) > 0: // what is cached may not be the newest
		return Kernel{}, problems[0]
	case i < 0:
		return Kernel{}, exit.New(exit.Usage, "see 'temper-lab kernels'", "the archive has no kernel %s", want)
	}
	if kernels[i].Cached {
		return kernels[i], nil
	}
	return kernels[i], c.unpackKernel(ctx, kernels[i])
}

func (c Cache) unpackKernel(ctx context.Context, k Kernel) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return c.fromPackage(ctx, k, func(dir string) error {
		// Renamed as a whole folder, so that a folder that exists is complete. The modules are left behind.
		ready := filepath.Join(dir, "ready")
		if err := os.Mkdir(ready, 0o755); err != nil {
			return c.explain(err)
		}
		for _, name := range []string{"vmlinuz", "config"} {
			file, err := findInPackage(dir, name, k)
			if err != nil && name == "config" {
				continue // config() says so to whoever needs it: of older releases the archive keeps the kernel alone
			}
			if err != nil {
				return err
			}
			if err := os.Rename(file, filepath.Join(ready, name)); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(c.path("kernels"), 0o755); err != nil {
			return c.explain(err)
		}
		if err := os.Rename(ready, c.kernelDir(k.Release)); err != nil && !os.IsExist(err) {
			return c.explain(err)
		}
		return nil
	})
}

// fromPackage hands over a folder that holds a kernel, unpacked from its packages, and is removed afterwards.
func (c Cache) fromPackage(ctx context.Context, k Kernel, take func(dir string) error) error {
	s, err := openSuite(ctx, c, k.Suite)
	if err != nil {
		return err
	}
	dir, err := c.temp()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	packages := []string{k.pkg}
	needed, err := s.depends(ctx, k.pkg)
	if err != nil {
		return err
	}
	// From Debian 14 on the configuration is in a package of its own.
	if base := "linux-base-" + k.Release; slices.Contains(needed, base) {
		packages = append(packages, base)
	}
	if err := s.download(ctx, filepath.Join(dir, "package"), packages...); err != nil {
		return err
	}
	return take(dir)
}

// findInPackage finds a file of a kernel's: in /boot, and from Debian 14 on beside the modules.
func findInPackage(dir, name string, k Kernel) (string, error) {
	for _, place := range []string{"boot/" + name + "-" + k.Release, "usr/lib/modules/" + k.Release + "/" + name} {
		path := filepath.Join(dir, "package", place)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s holds no %s where Debian has put one so far", k.pkg, name)
}

// config is the path of what a cached kernel was built with. One that was cached by an older Temper lacks it: it is
// fetched then, if the archive still has that kernel.
func (c Cache) config(ctx context.Context, release string) (string, error) {
	path := filepath.Join(c.kernelDir(release), "config")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	kernels, problems := c.AvailableKernels(ctx)
	i := slices.IndexFunc(kernels, func(k Kernel) bool { return k.Release == release && k.Suite != "" })
	switch {
	case i < 0 && len(problems) > 0:
		return "", problems[0]
	case i < 0:
		return "", exit.New(exit.Failed, "see 'temper-lab kernels' for others", "the configuration of kernel %s is not cached, and the archive no longer has it", release)
	}
	unlock, err := c.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	return path, c.fromPackage(ctx, kernels[i], func(dir string) error {
		file, err := findInPackage(dir, "config", kernels[i])
		if err != nil {
			return err
		}
		return c.explain(os.Rename(file, path))
	})
}
