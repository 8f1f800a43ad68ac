package enforce

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// TryPins does what scx_temper does to pin the scheduler, and undoes it: it makes a folder in that of the pins, and pins a
// map there. Modes do not tell whether that works, since AppArmor and SELinux refuse root, too. The error has cause and cure.
func TryPins(root host.Root) error {
	return tryPins(root, func(path string) error {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		if err != nil {
			return err
		}
		defer m.Close()
		return m.Pin(path)
	})
}

func tryPins(root host.Root, pin func(path string) error) error {
	dir := root.Pins()
	own, err := makeFolder(dir)
	defer removeUnused(dir)
	if err != nil {
		return refused(root, "make a folder in "+dir, err)
	}
	defer os.Remove(own)
	path := filepath.Join(own, "map")
	if err := pin(path); err != nil {
		return refused(root, "pin a map in "+dir, err)
	}
	if err := os.Remove(path); err != nil {
		return refused(root, "remove a map from "+dir, err)
	}
	return nil
}

// makeFolder makes one of a new name in dir, and dir if it is not there.
func makeFolder(dir string) (own string, err error) {
	const tries = 3 // a scx_temper that ends removes dir
	for range tries {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		if own, err = os.MkdirTemp(dir, "try-"); !errors.Is(err, fs.ErrNotExist) {
			return own, err
		}
	}
	return "", err
}

// removeUnused removes the folder of the pins if nothing is in it, and no scx_temper is about to pin there: that has the
// lock of sched/claim.c for as long as it lives.
func removeUnused(dir string) {
	folder, err := os.Open(dir)
	if err != nil {
		return
	}
	defer folder.Close()
	if syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		_ = syscall.Rmdir(dir)
	}
}

// refused is an error that says what keeps this process from doing something below the folder of the pins.
func refused(root host.Root, do string, err error) error {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		err = errno // paths are said already
	}
	folder := filepath.Dir(root.Pins())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit.New(exit.LoadFailed, "mount -t bpf bpf "+folder, "cannot %s: %w", do, err)
	case errors.Is(err, syscall.EROFS):
		return exit.New(exit.LoadFailed, "mount "+folder+" so that it can be written", "cannot %s: %w", do, err)
	case !errors.Is(err, fs.ErrPermission):
		return exit.New(exit.LoadFailed, "", "cannot %s: %w", do, err)
	}
	if profile := appArmorProfile(root); profile != "" {
		return exit.New(exit.LoadFailed, "have it unconfined, or under a profile that lets it write below "+root.Pins()+" (the chart's appArmorProfile)",
			"cannot %s: %w, with AppArmor's profile %s in force", do, err, profile)
	}
	if context := seLinuxContext(root); context != "" {
		return exit.New(exit.LoadFailed, "have it run as spc_t, or as a type that may write below "+root.Pins()+" (the chart's seLinuxOptions)",
			"cannot %s: %w, in SELinux's context %s", do, err, context)
	}
	return exit.New(exit.LoadFailed, "run as root, with CAP_BPF; what else may refuse it is in the kernel's log", "cannot %s: %w", do, err)
}

// appArmorProfile is the profile that confines this process; "" if none does, or only in its log.
func appArmorProfile(root host.Root) string {
	text, err := host.Read(root.Path("/proc/self/attr/apparmor/current"))
	if err != nil { // before 5.8, or without AppArmor
		text, _ = host.Read(root.Path("/proc/self/attr/current"))
	}
	name, mode, _ := strings.Cut(strings.TrimSuffix(text, ")"), " (")
	if mode == "enforce" || mode == "kill" {
		return name
	}
	return ""
}

// seLinuxContext is the context of this process, as user:role:type:level; "" if there is none, or it is one that nothing
// is refused to.
func seLinuxContext(root host.Root) string {
	text, err := host.Read(root.Path("/proc/self/attr/current"))
	fields := strings.Split(strings.TrimRight(text, "\x00"), ":")
	if err != nil || len(fields) < 3 || fields[2] == "unconfined_t" || fields[2] == "spc_t" {
		return ""
	}
	return strings.Join(fields, ":")
}
