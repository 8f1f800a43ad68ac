//go:build packages

package packages

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper"
)

// release is a folder with one file of each kind that a release signs, and the public key of who signs it.
type release struct {
	dir, fingerprint, public string
}

// newRelease makes a key that ends with the test.
func newRelease(t *testing.T) release {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg") // t.TempDir's may be too long for the agent's socket
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", home)
	t.Cleanup(func() {
		run(t, "gpgconf", "--kill", "all")
		os.RemoveAll(home)
	})
	r := release{dir: t.TempDir(), public: filepath.Join(home, "public.gpg")}
	run(t, "gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "Releaser <releaser@example.com>", "rsa3072", "sign", "1d")
	for line := range strings.Lines(run(t, "gpg", "--batch", "--with-colons", "--list-keys")) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			r.fingerprint = fields[9]
		}
	}
	run(t, "gpg", "--batch", "--output", r.public, "--export", r.fingerprint)
	return r
}

// run returns what a program says, and fails the test where the program fails.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// add brings a file that 'make' has built into the folder.
func (r release) add(t *testing.T, pattern string) (file string) {
	t.Helper()
	built, err := filepath.Glob(pattern)
	if err != nil || len(built) != 1 {
		t.Fatalf("want one %s, got %v; run 'make packages'", pattern, built)
	}
	content, err := os.ReadFile(built[0])
	if err != nil {
		t.Fatal(err)
	}
	return r.write(t, filepath.Base(built[0]), content)
}

func (r release) write(t *testing.T, name string, content []byte) (file string) {
	t.Helper()
	file = filepath.Join(r.dir, name)
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// debsig writes what debsig-verify wants to know of a key, as docs/start/verify.md has it, and returns how to ask it.
func (r release) debsig(t *testing.T) []string {
	t.Helper()
	id := r.fingerprint[len(r.fingerprint)-16:]
	page, err := os.ReadFile("../../docs/start/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	_, policy, _ := strings.Cut(string(page), "```xml\n")
	policy, _, found := strings.Cut(policy, "```")
	if !found {
		t.Fatal("docs/start/verify.md has no policy for debsig-verify")
	}
	key, err := os.ReadFile(r.public)
	if err != nil {
		t.Fatal(err)
	}
	policies, keyrings := t.TempDir(), t.TempDir()
	for folder, file := range map[string]struct {
		name    string
		content []byte
	}{
		policies: {"temper.pol", []byte(strings.ReplaceAll(policy, "KEYID", id))},
		keyrings: {"temper.gpg", key},
	} {
		if err := os.MkdirAll(filepath.Join(folder, id), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, id, file.name), file.content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"debsig-verify", "--policies-dir", policies, "--keyrings-dir", keyrings}
}

// rpm imports the key into a database of its own, and returns how to ask rpm, which otherwise takes a package without a signature, too.
func (r release) rpm(t *testing.T) []string {
	t.Helper()
	command := []string{"rpmkeys", "--dbpath", t.TempDir(), "--define", "_pkgverify_level all"}
	armored := filepath.Join(t.TempDir(), "public.asc")
	run(t, "gpg", "--batch", "--armor", "--output", armored, "--export", r.fingerprint)
	run(t, command[0], append(command[1:], "--import", armored)...)
	return append(command, "--checksig")
}

const sign = "../../packaging/sign.sh"

// Each kind is verified by its own tool, signed and whole; and not before it is signed, or with another byte. The chart's archive
// is tools/chart's.
func TestSignaturesVerify(t *testing.T) {
	r := newRelease(t)
	detached := func(file string) []string { return []string{"gpg", "--batch", "--verify", file + ".asc", file} }
	deb, rpm := r.add(t, filepath.Join(dist, "temper_"+temper.Version+"-1_*.deb")), r.add(t, filepath.Join(dist, "temper-"+temper.Version+"-1.*.rpm"))
	pom := r.write(t, "pathfence-core.pom", []byte("<project/>\n"))
	sums := r.write(t, "SHA256SUMS", fmt.Appendf(nil, "%064d  %s\n", 0, filepath.Base(deb)))
	for _, c := range []struct {
		file   string
		verify []string
	}{
		{deb, append(r.debsig(t), deb)},
		{rpm, append(r.rpm(t), rpm)},
		{pom, detached(pom)},
		{sums, detached(sums)},
	} {
		t.Run(filepath.Base(c.file), func(t *testing.T) {
			verify := func() ([]byte, error) { return exec.Command(c.verify[0], c.verify[1:]...).CombinedOutput() }
			if out, err := verify(); err == nil {
				t.Errorf("it is taken before it is signed: %s", out)
			}
			run(t, sign, r.fingerprint, c.file)
			if out, err := verify(); err != nil {
				t.Errorf("signed, it is refused: %v: %s", err, out)
			}
			content, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			content[len(content)/2] ^= 1
			r.write(t, filepath.Base(c.file), content)
			if out, err := verify(); err == nil {
				t.Errorf("with another byte, it is taken: %s", out)
			}
		})
	}
}

func TestSignedPackageInstalls(t *testing.T) {
	r := newRelease(t)
	deb := r.add(t, debian(t))
	run(t, sign, "releaser@example.com", deb)
	run(t, sign, "releaser@example.com", deb) // again: one signature, not two
	if members := run(t, "ar", "t", deb); strings.Count(members, "_gpg") != 1 {
		t.Errorf("it has %q, want one signature", members)
	}
	n := newNode(t)
	n.dpkg(t, "--install", deb)
	n.read(t, configuration)
}

func TestNothingIsSignedWithoutTheKey(t *testing.T) {
	r := newRelease(t)
	file := r.write(t, "SHA256SUMS", []byte("sums\n"))
	out, err := exec.Command(sign, "somebody@example.com", file).CombinedOutput()
	if want := []byte("sign: gpg has no secret key 'somebody@example.com'"); err == nil || !bytes.HasPrefix(out, want) {
		t.Errorf("%v: got %q, want %q", err, out, want)
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "*")); len(left) != 1 {
		t.Errorf("it leaves %v", left)
	}
}
