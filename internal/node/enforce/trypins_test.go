package enforce

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
)

const self = "/proc/self/attr/"

// A pin that works leaves nothing; nor does one that does not.
func TestTryPinsLeavesNothing(t *testing.T) {
	for name, refusal := range map[string]error{"a pin that works": nil, "a pin that is refused": syscall.EACCES} {
		for _, before := range []fixture.Files{{"/sys/fs/bpf/progs": ""}, {"/sys/fs/bpf/temper/link": "", "/sys/fs/bpf/temper/tiers": ""}} {
			root := fixture.Node(t, before)
			err := tryPins(root, func(path string) error {
				if folder := filepath.Dir(path); filepath.Dir(folder) != root.Pins() {
					t.Errorf("%s: pinned in %s, not in a folder of its own in %s", name, folder, root.Pins())
				}
				if refusal != nil {
					return refusal
				}
				return os.WriteFile(path, nil, 0o600)
			})
			if !errors.Is(err, refusal) {
				t.Errorf("%s: %v", name, err)
			}
			after := fixture.Files{}
			err = fs.WalkDir(os.DirFS(root.Path("/")), ".", func(path string, d fs.DirEntry, err error) error {
				if _, was := before["/"+path]; !was && (!d.IsDir() || strings.Contains(path, "try-")) {
					after["/"+path] = ""
				}
				return err
			})
			if err != nil || len(after) > 0 {
				t.Errorf("%s: left %v, %v", name, after, err)
			}
			if _, pinned := before["/sys/fs/bpf/temper/link"]; !pinned {
				if _, err := os.Stat(root.Pins()); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %s is left: %v", name, root.Pins(), err)
				}
			}
		}
	}
}

// While a scx_temper has the lock it may be about to pin there: the folder is left to it.
func TestTryPinsLeavesTheFolderToALoader(t *testing.T) {
	root := fixture.Node(t, fixture.Files{"/sys/fs/bpf/progs": ""})
	if err := os.Mkdir(root.Pins(), 0o700); err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(root.Pins())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := tryPins(root, func(path string) error { return os.WriteFile(path, nil, 0o600) }); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(root.Pins()); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestTryPinsSaysCauseAndCure(t *testing.T) {
	for name, c := range map[string]struct {
		files       fixture.Files
		refusal     error
		cause, cure string
	}{
		"AppArmor":                {fixture.Files{self + "apparmor/current": "cri-containerd.apparmor.d (enforce)\n", self + "current": "x\n"}, syscall.EACCES, "AppArmor's profile cri-containerd.apparmor.d in force", "appArmorProfile"},
		"AppArmor before 5.8":     {fixture.Files{self + "current": "docker-default (enforce)\n"}, syscall.EACCES, "AppArmor's profile docker-default in force", "appArmorProfile"},
		"AppArmor beside":         {fixture.Files{self + "apparmor/current": "unconfined\n", self + "current": "system_u:system_r:container_t:s0:c1,c2\x00"}, syscall.EACCES, "SELinux's context system_u:system_r:container_t:s0:c1,c2", "seLinuxOptions"},
		"AppArmor that only logs": {fixture.Files{self + "apparmor/current": "temper-agent (complain)\n"}, syscall.EACCES, "permission denied", "kernel's log"},
		"SELinux":                 {fixture.Files{self + "current": "system_u:system_r:container_t:s0:c1,c2\x00"}, syscall.EACCES, "SELinux's context system_u:system_r:container_t:s0:c1,c2", "spc_t"},
		"SELinux, unconfined":     {fixture.Files{self + "current": "system_u:system_r:spc_t:s0"}, syscall.EACCES, "permission denied", "kernel's log"},
		"no capability":           {nil, syscall.EPERM, "operation not permitted", "CAP_BPF"},
		"read only":               {fixture.Files{self + "apparmor/current": "docker-default (enforce)\n"}, syscall.EROFS, "read-only file system", "can be written"},
		"no bpffs":                {nil, syscall.ENOENT, "no such file or directory", "mount -t bpf"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fixture.Files{"/sys/fs/bpf/progs": ""}
			for path, text := range c.files {
				files[path] = text
			}
			err := tryPins(fixture.Node(t, files), func(path string) error { return &fs.PathError{Op: "pin", Path: path, Err: c.refusal} })
			e, is := errors.AsType[*exit.Error](err)
			if !is || e.Status != exit.LoadFailed || !strings.Contains(e.Cause.Error(), "cannot pin a map in ") || !strings.Contains(e.Cause.Error(), c.cause) || !strings.Contains(e.Cure, c.cure) {
				t.Errorf("got %v, want status %d, cause %q, cure %q", err, exit.LoadFailed, c.cause, c.cure)
			}
		})
	}
}

// The folder itself may be what cannot be made.
func TestTryPinsWithoutAFolder(t *testing.T) {
	root := fixture.Node(t, fixture.Files{self + "apparmor/current": "cri-containerd.apparmor.d (enforce)\n", "/sys/fs/bpf": "no folder"})
	err := tryPins(root, func(string) error { t.Error("pinned"); return nil })
	if exit.StatusOf(err) != exit.LoadFailed || !strings.Contains(err.Error(), "cannot make a folder in "+root.Pins()+": not a directory") {
		t.Error(err)
	}
}
