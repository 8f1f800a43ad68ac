package lab

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"temper.dev/temper/internal/base/exit"
)

// Cache is the folder that keeps kernels, the guest's userland and the private apt states between
// runs, and the folders of the guests that run now. Whoever changes it holds its lock.
type Cache string

// DefaultCache is $TEMPER_CACHE, or the user's cache folder.
func DefaultCache() (Cache, error) {
	if dir := os.Getenv("TEMPER_CACHE"); dir != "" {
		abs, err := filepath.Abs(dir)
		return Cache(abs), err
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", exit.New(exit.Failed, "set TEMPER_CACHE to a folder", "no place to cache kernels: %w", err)
	}
	return Cache(filepath.Join(dir, "temper")), nil
}

func (c Cache) path(elem ...string) string {
	return filepath.Join(append([]string{string(c)}, elem...)...)
}

// lock waits until no other process changes the cache, and returns how to let go.
func (c Cache) lock() (unlock func(), err error) {
	if err := os.MkdirAll(string(c), 0o755); err != nil {
		return nil, c.explain(err)
	}
	f, err := os.OpenFile(c.path("lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, c.explain(err)
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	// Only the holder of the lock has anything there: what is left is of a run that was killed.
	if err := os.RemoveAll(c.path("tmp")); err != nil {
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

// temp makes a folder inside the cache, so that what it holds can be renamed into place.
func (c Cache) temp() (string, error) {
	if err := os.MkdirAll(c.path("tmp"), 0o755); err != nil {
		return "", c.explain(err)
	}
	dir, err := os.MkdirTemp(c.path("tmp"), "")
	return dir, c.explain(err)
}

// explain gives a full disk its own exit status and cure; other errors pass.
func (c Cache) explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return exit.New(exit.NoDisk, "make room, or set TEMPER_CACHE to a folder on another disk", "%w", err)
	}
	return err
}
