// Package kernels finds the kernels that the lab boots, fetches them from Debian's archive, caches them, and makes from one
// the kernel of the deterministic machine. Figures are stated for one kernel, and the archive drops old ones: what is cached
// is kept, and wins.
//
// Kernels that Debian's archive lacks are built by scripts/upstream.sh from the configurations beside. None is booted here.
package kernels

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"pault.ag/go/debian/version"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/apt"
	"temper.dev/temper/lab/cache"
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

// compareVersions orders versions as dpkg does. A release is no package's version, and is not parsed as one.
func compareVersions(a, b string) int {
	return version.Compare(version.Version{Version: a}, version.Version{Version: b})
}

// matches tells whether want names k: by series ("6.18"), version ("6.18.15") or release.
func (k Kernel) matches(want string) bool {
	rest, ok := strings.CutPrefix(k.Release, want)
	return ok && want != "" && (rest == "" || !unicode.IsDigit(rune(rest[0])))
}

func folder(c cache.Folder, release string) string { return c.Path("kernels", release) }

// Vmlinuz is the path of a cached kernel.
func Vmlinuz(c cache.Folder, k Kernel) string { return filepath.Join(folder(c, k.Release), "vmlinuz") }

// cachedKernel is the release of a kernel that the lab runs: Debian's, or one of scripts/upstream.sh, with its variant before it.
var cachedKernel = regexp.MustCompile(`^((?:[a-z]+-)?\d+\.\d+)\.\S+-(?:cloud-amd64|temper)$`)

// Cached lists what needs no network, newest first.
func Cached(c cache.Folder) ([]Kernel, error) {
	entries, err := os.ReadDir(c.Path("kernels"))
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

// Available asks the archive anew and adds what is cached, newest first. A suite that cannot
// be read is left out and its error returned beside the others' kernels.
func Available(ctx context.Context, c cache.Folder) (kernels []Kernel, problems []error) {
	unlock, err := c.Lock()
	if err != nil {
		return nil, []error{err}
	}
	defer unlock()
	cached, err := Cached(c)
	if err != nil {
		return nil, []error{err}
	}
	for _, name := range kernelSuites {
		found, err := inArchive(ctx, c, name)
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

func inArchive(ctx context.Context, c cache.Folder, name string) ([]Kernel, error) {
	s, err := apt.Open(ctx, c, name)
	if err != nil {
		return nil, err
	}
	if err := s.Update(ctx); err != nil {
		return nil, err
	}
	packages, err := s.Packages(ctx, "linux-")
	return kernelsIn(name, packages), err
}

// Find returns the newest cached kernel that want names, and fetches one where none is
// cached. A cached kernel wins over a newer one in the archive, so that figures do not change
// under whoever compares them; Fetch moves on.
func Find(ctx context.Context, c cache.Folder, want string, notify func(string)) (Kernel, error) {
	cached, err := Cached(c)
	if err != nil {
		return Kernel{}, err
	}
	if i := slices.IndexFunc(cached, func(k Kernel) bool { return k.matches(want) }); i >= 0 {
		return cached[i], nil
	}
	notify("fetching kernel " + want + ", once")
	return Fetch(ctx, c, want)
}

// Newest are the newest of each series and suite in the archive, oldest first, from DefaultSeries on.
// Suites build the same version with different tools, which is what decides whether its BTF is sound.
func Newest(ctx context.Context, c cache.Folder) (newest []string, err error) {
	kernels, problems := Available(ctx, c)
	if len(problems) > 0 {
		return nil, problems[0]
	}
	seen := map[[2]string]bool{}
	for _, k := range kernels { // newest first
		build := [2]string{k.Series, k.Suite}
		if k.Suite == "" || seen[build] || compareVersions(k.Series, DefaultSeries) < 0 {
			continue
		}
		seen[build] = true
		newest = append(newest, k.Release)
	}
	slices.Reverse(newest)
	return newest, nil
}

// Fetch resolves the newest kernel in the archive that want names, and caches it.
func Fetch(ctx context.Context, c cache.Folder, want string) (Kernel, error) {
	kernels, problems := Available(ctx, c)
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
	return kernels[i], unpack(ctx, c, kernels[i])
}

func unpack(ctx context.Context, c cache.Folder, k Kernel) error {
	unlock, err := c.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	return fromPackage(ctx, c, k, func(dir string) error {
		// Renamed as a whole folder, so that a folder that exists is complete. The modules are left behind.
		ready := filepath.Join(dir, "ready")
		if err := os.Mkdir(ready, 0o755); err != nil {
			return c.Explain(err)
		}
		for _, name := range []string{"vmlinuz", "config"} {
			file, err := findInPackage(dir, name, k)
			if err != nil && name == "config" {
				continue // Config says so to whoever needs it: of older releases the archive keeps the kernel alone
			}
			if err != nil {
				return err
			}
			if err := os.Rename(file, filepath.Join(ready, name)); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(c.Path("kernels"), 0o755); err != nil {
			return c.Explain(err)
		}
		if err := os.Rename(ready, folder(c, k.Release)); err != nil && !os.IsExist(err) {
			return c.Explain(err)
		}
		return nil
	})
}

// fromPackage hands over a folder that holds a kernel, unpacked from its packages, and is removed afterwards.
func fromPackage(ctx context.Context, c cache.Folder, k Kernel, take func(dir string) error) error {
	s, err := apt.Open(ctx, c, k.Suite)
	if err != nil {
		return err
	}
	dir, err := c.Temp()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	packages := []string{k.pkg}
	needed, err := s.Depends(ctx, k.pkg)
	if err != nil {
		return err
	}
	// From Debian 14 on the configuration is in a package of its own.
	if base := "linux-base-" + k.Release; slices.Contains(needed, base) {
		packages = append(packages, base)
	}
	if err := s.Download(ctx, filepath.Join(dir, "package"), packages...); err != nil {
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

// Config is the path of what a cached kernel was built with. One that was cached by an older Temper lacks it: it is
// fetched then, if the archive still has that kernel.
func Config(ctx context.Context, c cache.Folder, release string) (string, error) {
	path := filepath.Join(folder(c, release), "config")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	kernels, problems := Available(ctx, c)
	i := slices.IndexFunc(kernels, func(k Kernel) bool { return k.Release == release && k.Suite != "" })
	switch {
	case i < 0 && len(problems) > 0:
		return "", problems[0]
	case i < 0:
		return "", exit.New(exit.Failed, "see 'temper-lab kernels' for others", "the configuration of kernel %s is not cached, and the archive no longer has it", release)
	}
	unlock, err := c.Lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	return path, fromPackage(ctx, c, kernels[i], func(dir string) error {
		file, err := findInPackage(dir, "config", kernels[i])
		if err != nil {
			return err
		}
		return c.Explain(os.Rename(file, path))
	})
}
