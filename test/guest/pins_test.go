//go:build guest

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"temper.dev/temper/internal/node/enforce"
)

// Where the kernel's own default has everyone write to bpffs, a user may make the folder of the pins first, and lock whatever he can
// open. Loaders start all the same, and nothing of his is lost.
func TestAUserKeepsNoLoaderAway(t *testing.T) {
	bpffs := t.TempDir()
	if err := os.Chmod(filepath.Dir(bpffs), 0o755); err != nil { // where a test's is closed to others
		t.Fatal(err)
	}
	if err := syscall.Mount("bpf", bpffs, "bpf", 0, "mode=1777"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(bpffs, 0); err != nil {
			t.Error(err)
		}
	})
	pins := filepath.Join(bpffs, "temper")
	mkdir := exec.Command("mkdir", "-p", filepath.Join(pins, "link"))
	mkdir.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if out, err := mkdir.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, folder := range []string{bpffs, pins} {
		f, err := os.Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
			t.Fatal(err)
		}
	}
	l := startLoader(t, "--pin", pins)
	if e := l.next(t); e.Event != enforce.EventAttached {
		t.Fatalf("%+v", e)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(pins, &st); err != nil || st.Uid != 0 || st.Mode&0o777 != 0o700 {
		t.Errorf("%v, of user %d with mode %o; want root's alone", err, st.Uid, st.Mode)
	}
	aside, err := filepath.Glob(pins + "-not-ours-*/link")
	if err != nil || len(aside) != 1 {
		t.Fatalf("%q (%v), want the user's folder", aside, err)
	}
	if want := fmt.Sprintf("user %d had made %s; it is %s now", user, pins, filepath.Dir(aside[0])); !strings.Contains(read(t, l.stderr), want) {
		t.Errorf("it does not say %q: %s", want, read(t, l.stderr))
	}
	if status := l.leave(t, syscall.SIGTERM); status != 0 {
		t.Errorf("left with %d: %s", status, read(t, l.stderr))
	}
	if _, err := os.Stat(pins); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", pins, err)
	}
}
