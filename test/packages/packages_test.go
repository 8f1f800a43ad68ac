//go:build packages

// Package packages tests what 'make packages' has built.
package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper"
)

const dist = "../../dist"

func debian(t *testing.T) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dist, "temper_"+temper.Version+"-1_*.deb"))
	if err != nil || len(list) != 1 {
		t.Fatalf("want one package of version %s in %s, got %v; run 'make packages'", temper.Version, dist, list)
	}
	return list[0]
}

// node is a file system of its own with dpkg's database, and no systemd that runs.
type node string

func newNode(t *testing.T) node {
	t.Helper()
	n := node(t.TempDir())
	for _, dir := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/dpkg/triggers", "var/log"} {
		if err := os.MkdirAll(filepath.Join(string(n), dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.write(t, "/var/lib/dpkg/status", "")
	return n
}

func (n node) dpkg(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"--root=" + string(n), "--force-script-chrootless", "--force-confold"}, args...)
	if out, err := exec.Command("dpkg", args...).CombinedOutput(); err != nil {
		t.Fatalf("dpkg %v: %v\n%s", args, err, out)
	}
}

func (n node) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(n), path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (n node) read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(string(n), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// enable does what 'systemctl enable' does in an image that does not run.
func (n node) enable(t *testing.T) {
	t.Helper()
	wants := filepath.Join(string(n), "etc/systemd/system/multi-user.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/lib/systemd/system/temper.service", filepath.Join(wants, "temper.service")); err != nil {
		t.Fatal(err)
	}
}

// files are all that are there, but for dpkg's own.
func (n node) files(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir(string(n), func(path string, entry os.DirEntry, err error) error {
		place := strings.TrimPrefix(path, string(n))
		if err == nil && !entry.IsDir() && !strings.HasPrefix(place, "/var/") {
			list = append(list, place)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

const configuration = "/etc/temper/temper.yaml"

func TestInstalledFiles(t *testing.T) {
	n := newNode(t)
	n.dpkg(t, "--install", debian(t))
	for _, c := range []struct{ file, has string }{
		{"/usr/lib/systemd/system/temper.service", "\nExecStart=/usr/bin/temper agent --config /etc/temper/temper.yaml\n"},
		{configuration, "\ntiers:\n"},
		{"/usr/share/bash-completion/completions/temper", "__start_temper"},
		{"/usr/share/zsh/vendor-completions/_temper", "#compdef temper"},
		{"/usr/share/fish/vendor_completions.d/temper.fish", "complete -c temper"},
	} {
		t.Run(c.file, func(t *testing.T) {
			if got := n.read(t, c.file); !strings.Contains(got, c.has) {
				t.Errorf("it does not have %q:\n%.500s", c.has, got)
			}
		})
	}
	for _, page := range []string{"man1/temper.1.gz", "man1/temper-status.1.gz", "man8/scx_temper.8.gz"} {
		if place := "/usr/share/man/" + page; !slices.Contains(n.files(t), place) {
			t.Errorf("there is no %s", place)
		}
	}
	for _, program := range []string{"temper", "scx_temper"} {
		t.Run(program, func(t *testing.T) {
			out, err := exec.Command(filepath.Join(string(n), "usr/bin", program), "--version").CombinedOutput()
			if want := "version  " + temper.Version + "\n"; err != nil || !strings.HasPrefix(string(out), want) {
				t.Errorf("%v: got %q, want %q first", err, out, want)
			}
			if strings.Contains(string(out), "\ncommit   unknown\n") {
				t.Errorf("got %q, want the commit of the release", out)
			}
		})
	}
}

// What an operator has configured outlives an upgrade and a removal; a purge leaves the file system as it was found.
func TestConfigurationIsTheOperators(t *testing.T) {
	n := newNode(t)
	found := n.files(t)
	const edited = "tiers: {}\n"
	n.dpkg(t, "--install", debian(t))
	n.write(t, configuration, edited)
	n.write(t, "/etc/temper/safe-mode", "")
	n.enable(t)
	n.dpkg(t, "--install", debian(t))
	if got := n.read(t, configuration); got != edited {
		t.Errorf("after an upgrade it is %q, want %q", got, edited)
	}
	n.dpkg(t, "--remove", "temper")
	if got, want := strings.Join(n.files(t), " "), "/etc/temper/safe-mode "+configuration; got != want {
		t.Errorf("a removal leaves %s, want %s", got, want)
	}
	n.dpkg(t, "--purge", "temper")
	if got := n.files(t); len(got) != len(found) {
		t.Errorf("a purge leaves %v", got)
	}
}
