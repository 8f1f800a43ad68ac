// Package cache is the folder that keeps what was fetched or made once, so that a second run needs no network: kernels, the
// guest's userland and the private apt states. The folders of the guests that run now are in it, too.
//
// It knows where things are and who may change them, not what they are: whoever puts something there names its place.
package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"temper.dev/temper/internal/base/exit"
)

// Folder is the path of one. Whoever changes what is in it holds its lock.
type Folder string

// Default is $TEMPER_CACHE, or the user's cache folder.
func Default() (Folder, error) {
	if dir := os.Getenv("TEMPER_CACHE"); dir != "" {
		abs, err := filepath.Abs(dir)
		return Folder(abs), err
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", exit.New(exit.Failed, "set TEMPER_CACHE to a folder", "no place to cache kernels: %w", err)
	}
	return Folder(filepath.Join(dir, "temper")), nil
}

// Path is that of something in it.
func (c Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{string(c)}, elem...)...)
}

// Lock waits until no other process changes the cache, and returns how to let go.
func (c Folder) Lock() (unlock func(), err error) {
	if err := os.MkdirAll(string(c), 0o755); err != nil {
		return nil, c.Explain(err)
	}
	f, err := os.OpenFile(c.Path("lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, c.Explain(err)
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	// Only the holder of the lock has anything there: what is left is of a run that was killed.
	if err := os.RemoveAll(c.Path("tmp")); err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// flock retries what a signal interrupts.
func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// Temp makes a folder inside the cache, so that what it holds can be renamed into place.
func (c Folder) Temp() (string, error) {
	if err := os.MkdirAll(c.Path("tmp"), 0o755); err != nil {
		return "", c.Explain(err)
	}
	dir, err := os.MkdirTemp(c.Path("tmp"), "")
	return dir, c.Explain(err)
}

// Explain gives a full disk its own exit status and cure, and a cache that may not be written a cure; other errors pass.
func (c Folder) Explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return exit.New(exit.NoDisk, "make room, or set TEMPER_CACHE to a folder on another disk", "%w", err)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return exit.New(exit.Failed, "set TEMPER_CACHE to a folder that you can write to", "%w", err)
	}
	return err
}
