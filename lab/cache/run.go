package cache

import (
	"os"
	"path/filepath"
	"syscall"
)

// RunFolder makes a folder for one guest, and removes those of runs that were killed.
func (c Folder) RunFolder() (dir string, leave func(), err error) {
	unlock, err := c.Lock()
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	if err := os.MkdirAll(c.Path("runs"), 0o755); err != nil {
		return "", nil, c.Explain(err)
	}
	c.sweepRuns()
	if dir, err = os.MkdirTemp(c.Path("runs"), ""); err != nil {
		return "", nil, c.Explain(err)
	}
	alive, err := os.Create(filepath.Join(dir, "alive"))
	if err == nil {
		err = flock(alive, syscall.LOCK_EX)
	}
	if err != nil {
		return "", nil, c.Explain(err)
	}
	return dir, func() { os.RemoveAll(dir); alive.Close() }, nil
}

// sweepRuns removes the folders that nobody keeps alive. The lock ends with its holder, however it ends.
func (c Folder) sweepRuns() {
	left, _ := filepath.Glob(c.Path("runs", "*"))
	for _, dir := range left {
		f, err := os.Open(filepath.Join(dir, "alive"))
		if err == nil && flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil || os.IsNotExist(err) {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}
