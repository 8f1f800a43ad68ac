package lab

import (
	"os"
	"path/filepath"
	"syscall"
)

// runFolder makes a folder for one guest, and removes those of runs that were killed.
func (c Cache) runFolder() (dir string, leave func(), err error) {
	unlock, err := c.lock()
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	if err := os.MkdirAll(c.path("runs"), 0o755); err != nil {
		return "", nil, c.explain(err)
	}
	c.sweepRuns()
	if dir, err = os.MkdirTemp(c.path("runs"), ""); err != nil {
		return "", nil, c.explain(err)
	}
	alive, err := os.Create(filepath.Join(dir, "alive"))
	if err == nil {
		err = flock(alive, syscall.LOCK_EX)
	}
	if err != nil {
		return "", nil, c.explain(err)
	}
	return dir, func() { os.RemoveAll(dir); alive.Close() }, nil
}

// sweepRuns removes the folders that nobody keeps alive. The lock ends with its holder, however it ends.
func (c Cache) sweepRuns() {
	left, _ := filepath.Glob(c.path("runs", "*"))
	for _, dir := range left {
		f, err := os.Open(filepath.Join(dir, "alive"))
		if err == nil && flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil || os.IsNotExist(err) {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}
