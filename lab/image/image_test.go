package image

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cavaliergopher/cpio"
	"golang.org/x/sys/unix"
)

func TestArchiveIsReproducible(t *testing.T) {
	pack := func(modified time.Time) []byte {
		host := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(host, []byte("content"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(host, modified, modified); err != nil {
			t.Fatal(err)
		}
		a := Archive{}
		a.Program("/bin/program", host)
		a.link("bin/alias", "program")
		a.Data("etc/passwd", []byte("root"))
		a.dir("tmp")
		var out bytes.Buffer
		if err := a.write(&out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	if !bytes.Equal(pack(time.Unix(1, 0)), pack(time.Unix(1e9, 0))) {
		t.Error("two archives of the same content differ")
	}
}

func TestUnpack(t *testing.T) {
	host := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(host, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := Archive{}
	a.Program("usr/bin/program", host)
	a.Data("etc/hosts", []byte("localhost"))
	a.link("bin", "usr/bin")
	a.link("dangling", "/nowhere")
	a.dir("tmp")
	dir := t.TempDir()
	defer unix.Umask(unix.Umask(0o077))
	if err := a.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, mode, content, target string }{
		{"usr/bin/program", "-rwxr-xr-x", "content", ""},
		{"bin/program", "-rwxr-xr-x", "content", ""},
		{"etc/hosts", "-rw-r--r--", "localhost", ""},
		{"bin", "Lrwxrwxrwx", "", "usr/bin"},
		{"dangling", "Lrwxrwxrwx", "", "/nowhere"},
		{"tmp", "drwxr-xr-x", "", ""},
	} {
		at := filepath.Join(dir, c.name)
		info, err := os.Lstat(at)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		content, _ := os.ReadFile(at) // of a folder, or of a link that leads nowhere, nothing
		target, _ := os.Readlink(at)
		if mode := info.Mode().String(); mode != c.mode || string(content) != c.content || target != c.target {
			t.Errorf("%s: %s, content %q, target %q; want %s, %q, %q", c.name, mode, content, target, c.mode, c.content, c.target)
		}
	}
}

func TestInitrdHoldsImageThenOverlay(t *testing.T) {
	base, overlay := Archive{}, Archive{}
	base.Data("etc/hosts", []byte("12345"))
	overlay.Data("plan.json", []byte("{}"))
	var out bytes.Buffer
	if err := base.write(&out); err != nil {
		t.Fatal(err)
	}
	initrd, err := Image{data: out.Bytes()}.Initrd(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(names(t, initrd[:out.Len()]), []byte("etc etc/hosts ")) {
		t.Errorf("image holds %q", names(t, initrd))
	}
	start := (out.Len() + 3) &^ 3
	if !bytes.Equal(names(t, initrd[start:]), []byte("plan.json ")) {
		t.Errorf("overlay holds %q", names(t, initrd[start:]))
	}
}

func names(t *testing.T, data []byte) []byte {
	t.Helper()
	var out []byte
	for r := cpio.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, h.Name...), ' ')
	}
}

func TestArchiveKeepsOutOfTheHost(t *testing.T) {
	a := Archive{}
	a.Data("../../etc/x", nil)
	if _, ok := a["etc/x"]; !ok {
		t.Errorf("got %v", a)
	}
}
