package native

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/image"
	"temper.dev/temper/lab/ladder"
)

// rootFolder is where a guest's files are unpacked. On the host it stays an empty folder: what is mounted there is seen by one
// thread, and by what that starts.
const rootFolder = "/run/temper-root"

// Inside calls do where the root folder has the files that a guest has, and this host's processes, devices, cgroups and
// demoFolder. The network has loopback, and nothing else: no port is in use, and nobody outside reaches what listens.
func Inside(a image.Archive, do func() error) error {
	if err := os.MkdirAll(rootFolder, 0o700); err != nil {
		return err
	}
	defer os.Remove(rootFolder)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with this function: nothing else may run on it
		err := enter(a)
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// enter changes what this thread sees, and what it will start.
func enter(a image.Archive) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", rootFolder, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", rootFolder, err)
	}
	if err := a.Unpack(rootFolder); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(rootFolder, "tmp"), 0o777|os.ModeSticky); err != nil {
		return err
	}
	for _, shared := range []string{"/proc", "/sys", "/dev", demoFolder} {
		at := filepath.Join(rootFolder, shared)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(shared, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", shared, at, err)
		}
	}
	if err := unix.Chroot(rootFolder); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return ladder.RaiseLoopback()
}
