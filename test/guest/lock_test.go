//go:build guest

package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// This program plays the owners of locks itself: it is its own child then, and the variable names what to do.
const ownerRole = "TEMPER_TEST_OWNER"

// Each does one thing in the folder, over and over, and has a lock of the kernel nearly all the time.
var owners = map[string]func(dir string) (again func() error, err error){
	// The rwsem of a file's inode, for as long as a write takes.
	"write": func(dir string) (func() error, error) {
		f, err := os.OpenFile(filepath.Join(dir, "file"), os.O_RDWR|os.O_CREATE, 0o600)
		data := make([]byte, 16<<20)
		return func() error {
			_, err := f.WriteAt(data, 0)
			return err
		}, err
	},
	// The mutex of a pipe, as long as it is being filled or emptied.
	"pipe": func(dir string) (func() error, error) {
		p, err := openPipe(dir)
		data := make([]byte, pipeSize)
		return func() error {
			if _, err := unix.Write(p, data); err != nil {
				return err
			}
			_, err := unix.Read(p, data)
			return err
		}, err
	},
	// RCU sections, one after the other.
	"look": func(dir string) (func() error, error) {
		path := dir + strings.Repeat("/.", 1000)
		return func() error {
			var s unix.Stat_t
			return unix.Stat(path, &s)
		}, nil
	},
	// The same, while it waits for a writer to release the file.
	"splice": func(dir string) (func() error, error) {
		p, err := openPipe(dir)
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(filepath.Join(dir, "file"), os.O_RDWR|os.O_CREATE, 0o600)
		return func() error {
			if _, err := unix.Write(p, make([]byte, 4096)); err != nil {
				return err
			}
			var at int64
			_, err := unix.Splice(p, nil, int(f.Fd()), &at, 4096, 0)
			return err
		}, err
	},
}

const pipeSize = 1 << 20

func membarrier() error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, 1, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func backgroundEndsItsRCUSections(t *testing.T) {
	dir := t.TempDir()
	for range 16 {
		startOwner(t, "look", dir, "/background")
	}
	alone := inTheMean(t, membarrier)
	spin(t, "/critical", runtime.NumCPU())
	full := inTheMean(t, membarrier)
	t.Logf("a grace period, in the mean: %v beside nothing, %v on a full node", alone, full)
	if full > time.Second {
		t.Error("background stays in its RCU sections")
	}
}

func openPipe(dir string) (fd int, err error) {
	path := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil && err != unix.EEXIST {
		return -1, err
	}
	if fd, err = unix.Open(path, unix.O_RDWR, 0); err != nil {
		return -1, err
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
	return fd, err
}

func beOwner(what, dir string) {
	runtime.LockOSThread()
	again, err := owners[what](dir)
	for first := true; err == nil; first = false {
		if err = again(); first {
			os.Stdout.Write([]byte{1})
		}
	}
	panic(fmt.Sprint(what, ": ", err))
}

// startOwner returns when the owner has done its thing once and is in the cgroup.
func startOwner(t *testing.T, what, dir, cg string) {
	t.Helper()
	s := play(t, ownerRole+"="+what, dir)
	if _, err := s.works.Read(make([]byte, 1)); err != nil {
		t.Fatal(what, " has not begun: ", err)
	}
	s.moveTo(t, cg)
}

// inTheMean is how long it takes to do it, over a few times. The longest of them is chance where several want a lock.
func inTheMean(t *testing.T, do func() error) time.Duration {
	t.Helper()
	const times = 10
	var all time.Duration
	for range times {
		time.Sleep(20 * time.Millisecond) // the owners get hold of their locks again
		start := time.Now()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		all += time.Since(start)
	}
	return all / times
}

// What background tasks have locked is released as soon as they can be done with it, however full the node.
func backgroundReleasesLocks(t *testing.T) {
	for _, c := range []struct {
		name   string
		owners []string
		want   func(dir string) func() error
	}{
		{"rwsem", []string{"write"}, wantFile},
		{"mutex", []string{"pipe"}, wantPipe},
		{"crowd", []string{"write", "write", "write", "write"}, wantFile},
		{"chain", []string{"write", "splice"}, wantPipe},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, what := range c.owners {
				startOwner(t, what, dir, "/background")
			}
			want := c.want(dir)
			alone := inTheMean(t, want)
			spin(t, "/critical", runtime.NumCPU())
			full := inTheMean(t, want)
			t.Logf("a wait for the lock, in the mean: %v beside nothing, %v on a full node", alone, full)
			if full > 3*alone+10*time.Millisecond {
				t.Error("background keeps what it has locked")
			}
		})
	}
}

func wantFile(dir string) func() error {
	return func() error {
		f, err := os.OpenFile(filepath.Join(dir, "file"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt([]byte{1}, 0)
		return err
	}
}

func wantPipe(dir string) func() error {
	return func() error {
		p, err := openPipe(dir)
		if err != nil {
			return err
		}
		defer unix.Close(p)
		_, err = unix.IoctlGetInt(p, unix.TIOCINQ)
		return err
	}
}
