package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/provenance"
)

// gpg runs it, with the keys of folder home.
func gpg(t *testing.T, home string, args ...string) {
	t.Helper()
	if out, err := exec.Command("gpg", append([]string{"--homedir", home, "--batch"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("gpg %v: %v\n%s", args, err, out)
	}
}

// What signs a release signs as Helm verifies it ('helm verify', 'helm install --verify').
func TestSignedArchiveVerifies(t *testing.T) {
	const releaser = "releaser@example.com"
	home, err := os.MkdirTemp("", "gpg") // t.TempDir's may be too long for the agent's socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	defer exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
	keys, to := filepath.Join(home, "public.gpg"), t.TempDir()
	gpg(t, home, "--passphrase", "", "--quick-generate-key", releaser, "rsa3072", "sign", "1d")
	gpg(t, home, "--output", keys, "--export", releaser)
	if err := pack(folder, to); err != nil {
		t.Fatal(err)
	}
	name := "temper-" + load(t).Metadata.Version + ".tgz"
	cmd := exec.Command("../../packaging/sign.sh", releaser, filepath.Join(to, name))
	cmd.Env = append(os.Environ(), "GNUPGHOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive, err := os.ReadFile(filepath.Join(to, name))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := os.ReadFile(filepath.Join(to, name+".prov"))
	if err != nil {
		t.Fatal(err)
	}
	signatory, err := provenance.NewFromKeyring(keys, "")
	if err != nil {
		t.Fatal(err)
	}
	other := append([]byte{}, archive...)
	other[len(other)/2] ^= 1
	for _, c := range []struct {
		name           string
		archive, proof []byte
		fails          string
	}{
		{"as it was signed", archive, signed, ""},
		{"another byte in the archive", other, signed, "sha256 sum does not match"},
		{"another byte in the proof", archive, []byte(strings.Replace(string(signed), "name: temper", "name: tamper", 1)), "signature"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := signatory.Verify(c.archive, c.proof, name); (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v, want %q", err, c.fails)
			}
		})
	}
}
