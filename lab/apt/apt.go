// Package apt reads Debian's archive. Guests boot and run what Debian has signed, on hosts whose own apt may read another
// distribution. So the host's apt is run with a state of its own: here are a suite's packages and their files, the mirror that
// this host is meant to use, and what apt's words mean.
//
// The host's sources, lists and installed packages are neither used nor changed. What packages are for is not known here.
package apt

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/cache"
)

// Suite is one suite of Debian's archive, with an apt state of its own, so that a suite that the mirror lacks does not take
// the others with it.
type Suite struct {
	name  string
	dir   string
	cache cache.Folder
}

// The archive's key, under the names that Debian and Ubuntu have used.
var keyrings = []string{
	"/usr/share/keyrings/debian-archive-keyring.pgp",
	"/usr/share/keyrings/debian-archive-keyring.gpg",
}

// Open lays out the private state, for a caller that holds the cache's lock. It needs no network.
func Open(ctx context.Context, c cache.Folder, name string) (*Suite, error) {
	s := &Suite{name: name, dir: c.Path("apt", name), cache: c}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, exit.New(exit.Failed, "run the lab on Debian or Ubuntu", "the lab fetches kernels with apt, which is not here")
	}
	mirror, err := findMirror(hostRoot(), os.Getenv)
	if err != nil {
		return nil, err
	}
	keyring, err := findKeyring()
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial", "empty"} {
		if err := os.MkdirAll(filepath.Join(s.dir, d), 0o755); err != nil {
			return nil, c.Explain(err)
		}
	}
	conf, err := s.config(ctx)
	if err != nil {
		return nil, err
	}
	for file, text := range map[string]string{
		"status":       "",
		"sources.list": fmt.Sprintf("deb [arch=amd64 signed-by=%s] %s %s main\n", keyring, mirror, name),
		"apt.conf":     conf,
	} {
		if err := os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o644); err != nil {
			return nil, c.Explain(err)
		}
	}
	return s, nil
}

func findKeyring() (string, error) {
	for _, k := range keyrings {
		if _, err := os.Stat(k); err == nil {
			return k, nil
		}
	}
	return "", exit.New(exit.Failed, "install debian-archive-keyring, or run 'make deps'", "the key of Debian's archive is not here, so kernels cannot be verified")
}

// config is the host's way to the network (proxies, timeouts) without its hooks and folders.
func (s *Suite) config(ctx context.Context) (string, error) {
	dump, err := exec.CommandContext(ctx, "apt-config", "dump").Output()
	if err != nil {
		return "", fmt.Errorf("apt-config dump: %w", err)
	}
	var conf strings.Builder
	for line := range strings.Lines(string(dump)) {
		if strings.HasPrefix(line, "Acquire::") && !strings.HasPrefix(line, "Acquire::IndexTargets") {
			conf.WriteString(line)
		}
	}
	at := func(name string) string { return filepath.Join(s.dir, name) }
	for _, set := range [][2]string{
		{"Dir::State", s.dir},
		{"Dir::State::lists", at("lists")},
		{"Dir::State::status", at("status")},
		{"Dir::Cache", at("cache")},
		{"Dir::Etc::sourcelist", at("sources.list")},
		{"Dir::Etc::sourceparts", at("empty")},
		{"Dir::Etc::parts", at("empty")},
		{"Dir::Etc::main", "/dev/null"},
		{"APT::Architecture", "amd64"},
		{"APT::Sandbox::User", "root"}, // the state belongs to whoever runs the lab, not to _apt
		{"Acquire::Languages", "none"},
		{"Acquire::Retries", "2"},
		{"APT::Update::Error-Mode", "any"}, // else a mirror out of reach is a warning and old lists are used
		// A frozen mirror's index expires, and stays as authentic as it was: the signature is
		// checked all the same, and an older kernel does no harm in a guest without a network.
		{"Acquire::Check-Valid-Until", "false"},
	} {
		fmt.Fprintf(&conf, "%s %q;\n", set[0], set[1])
	}
	return conf.String(), nil
}

// run runs one apt command in the private state and returns its output.
func (s *Suite) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(s.dir, "apt.conf"), "LC_ALL=C")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", explainApt(fmt.Sprintf("%s %s (%s)", name, args[0], s.name), errs.String(), err)
	}
	return out.String(), nil
}

// Update reads the suite's index anew.
func (s *Suite) Update(ctx context.Context) error {
	_, err := s.run(ctx, s.dir, "apt-get", "update", "-qq")
	return err
}

// Packages lists the names that start with prefix.
func (s *Suite) Packages(ctx context.Context, prefix string) ([]string, error) {
	out, err := s.run(ctx, s.dir, "apt-cache", "pkgnames", prefix)
	return strings.Fields(out), err
}

// Depends lists the packages that name directly asks for.
func (s *Suite) Depends(ctx context.Context, name string) ([]string, error) {
	out, err := s.run(ctx, s.dir, "apt-cache", "depends", "--important", name)
	return parseDepends(out), err
}

// parseDepends reads "  Depends: name" lines, alternatives ("|Depends:") among them, and leaves out
// names that no package has ("<perl:any>").
func parseDepends(out string) []string {
	var names []string
	for line := range strings.Lines(out) {
		kind, name, ok := strings.Cut(strings.TrimSpace(line), "Depends: ")
		if ok && (kind == "" || kind == "|" || kind == "Pre") && !strings.HasPrefix(name, "<") {
			names = append(names, name)
		}
	}
	return names
}

// Download fetches packages, verified through the index's signature, and unpacks them into dir.
func (s *Suite) Download(ctx context.Context, dir string, names ...string) error {
	debs, err := s.cache.Temp()
	if err != nil {
		return err
	}
	defer os.RemoveAll(debs)
	if _, err := s.run(ctx, debs, "apt-get", append([]string{"download", "-qq"}, names...)...); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	if len(files) != len(names) {
		return fmt.Errorf("apt-get download left %d files for %d packages", len(files), len(names))
	}
	for _, f := range files {
		if _, err := s.run(ctx, debs, "dpkg-deb", "-x", f, dir); err != nil {
			return err
		}
	}
	return nil
}
