package cache

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"temper.dev/temper/internal/base/exit"
)

func TestExplain(t *testing.T) {
	at := func(err error) error { return &fs.PathError{Op: "mkdir", Path: "/.cache", Err: err} }
	for _, c := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{"a full disk", at(syscall.ENOSPC), exit.NoDisk, "mkdir /.cache: no space left on device; make room, or set TEMPER_CACHE to a folder on another disk"},
		{"another's home", at(syscall.EACCES), exit.Failed, "mkdir /.cache: permission denied; set TEMPER_CACHE to a folder that you can write to"},
		{"a disk that is read-only", at(syscall.EROFS), exit.Failed, "mkdir /.cache: read-only file system; set TEMPER_CACHE to a folder that you can write to"},
		{"another error", errors.New("why"), exit.Failed, "why"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Folder("").Explain(c.err)
			if err.Error() != c.want || exit.StatusOf(err) != c.status {
				t.Errorf("%v, status %d; want %s, status %d", err, exit.StatusOf(err), c.want, c.status)
			}
		})
	}
}
