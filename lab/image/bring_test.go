package image

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/lab/libraries"
)

// compiled is a program of one line, or a shared library, linked as the arguments say.
func compiled(t *testing.T, file, source string, args ...string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gcc", append([]string{"-x", "c", "-", "-x", "none", "-o", file}, args...)...)
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, out)
	}
	return file
}

// application is a folder with a program that finds a library of its own beside it.
func application(t *testing.T) string {
	dir := t.TempDir()
	library := compiled(t, filepath.Join(dir, "lib/libown.so.1"), "int own(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libown.so.1")
	compiled(t, filepath.Join(dir, "bin/program"), "int own(void); int main(void) { return own(); }", library, "-Wl,-rpath,$ORIGIN/../lib", "-Wl,--no-as-needed", "-lm")
	return dir
}

func TestProgramsTravelWithWhatTheyNeed(t *testing.T) {
	dir := application(t)
	a := Archive{}
	if err := a.Bring("/opt/program", filepath.Join(dir, "bin/program")); err != nil {
		t.Fatal(err)
	}
	// $ORIGIN is where the program is in the guest.
	if got, want := a["lib/libown.so.1"].host, filepath.Join(dir, "lib/libown.so.1"); got != want {
		t.Errorf("the program's own library: got %q, want %q", got, want)
	}
	// The C library and the loader are where this host's loader has them.
	out, err := exec.Command("ldd", filepath.Join(dir, "bin/program")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[1] != "=>" || strings.HasPrefix(words[2], dir) {
			continue
		}
		if got := a[words[2][1:]].host; got == "" {
			t.Errorf("%s is not in the guest; ldd has it as %s", words[0], words[2])
		}
	}
	if _, there := a["lib/x86_64-linux-gnu/"+libraries.Loader]; !there {
		t.Errorf("the loader is not in the guest: %v", slices.Sorted(maps.Keys(a)))
	}
}

func TestFoldersTravelWhole(t *testing.T) {
	dir := application(t)
	for file, text := range map[string]string{"etc/settings": "x", "run.sh": "#!/bin/sh\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("bin/program", filepath.Join(dir, "start")); err != nil {
		t.Fatal(err)
	}
	foreign(t, filepath.Join(dir, "bin/program"), filepath.Join(dir, "bin/other"))
	a := Archive{}
	if err := a.Bring("/srv/app", dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"srv/app/bin/program", "srv/app/bin/other", "srv/app/lib/libown.so.1", "srv/app/etc/settings", "srv/app/run.sh", "lib/x86_64-linux-gnu/libc.so.6"} {
		if a[name].host == "" {
			t.Errorf("%s is not in the guest", name)
		}
	}
	if got := a["srv/app/start"].target; got != "bin/program" {
		t.Errorf("the link leads to %q", got)
	}
}

// foreign copies a program and makes it one for arm64, by its header.
func foreign(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	text[18], text[19] = 183, 0
	if err := os.WriteFile(to, text, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestWhatCannotTravel(t *testing.T) {
	dir := application(t)
	program := filepath.Join(dir, "bin/program")
	arm := filepath.Join(dir, "arm")
	foreign(t, program, arm)
	alone := filepath.Join(t.TempDir(), "alone")
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(alone, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ host, want string }{
		"not there":         {dir + "/none", "cannot put a file into the guest: stat " + dir + "/none: no such file or directory"},
		"no file":           {"/dev/null", "cannot put /dev/null into the guest: it is neither a file nor a folder"},
		"another processor": {arm, arm + " is for AARCH64, and the guest's processor is x86-64; bring one for x86-64"},
		"library missing":   {alone, alone + " needs libown.so.1, which this host does not have; install what has it, or link the program statically"},
	} {
		if err := (Archive{}).Bring("/x", test.host); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// Who brings a library says where it is, as by LD_LIBRARY_PATH; what it needs comes with it.
func TestFoldersCarryLibrariesThatNoProgramNames(t *testing.T) {
	dir := t.TempDir()
	library := compiled(t, filepath.Join(dir, "deep/libcarried.so"), "int own(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libcarried.so", "-Wl,--no-as-needed", "-lm")
	if err := os.Chmod(library, 0o644); err != nil { // as distributions have them
		t.Fatal(err)
	}
	compiled(t, filepath.Join(dir, "program"), "int own(void); int main(void) { return own(); }", library)
	plugin := compiled(t, filepath.Join(t.TempDir(), "libother.so"), "int other(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libother.so")
	compiled(t, filepath.Join(dir, "plugin.so"), "int other(void); int use(void) { return other(); }", "-shared", "-fPIC", plugin)
	a := Archive{}
	if err := a.Bring("/srv/app", dir); err != nil {
		t.Fatal(err)
	}
	if _, there := a["lib/x86_64-linux-gnu/libm.so.6"]; !there {
		t.Errorf("libm is not in the guest: %v", slices.Sorted(maps.Keys(a)))
	}
}

func TestDataTravelsWhateverProcessorItIsFor(t *testing.T) {
	object := filepath.Join(t.TempDir(), "x.o")
	foreign(t, filepath.Join(application(t), "bin/program"), object)
	if err := os.Chmod(object, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (Archive{}).Bring("/x.o", object); err != nil {
		t.Error(err)
	}
}
