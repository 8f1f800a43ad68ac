package demo

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/report"
)

// ReportName is the page in the demo's folder.
const ReportName = "report.html"

// CheckFolder finds out before minutes of work that their result could not be written. It makes
// nothing: a demo that is interrupted leaves no trace.
func CheckFolder(out string) error {
	dir, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) {
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
	}
	if err == nil {
		err = tryFolder(dir)
	}
	if err != nil {
		return exit.New(exit.Usage, "choose another with --out", "cannot write to the folder %s: %w", out, err)
	}
	return nil
}

// tryFolder makes a folder in another, and removes it: of some file systems the rights do not tell.
func tryFolder(dir string) error {
	made, err := os.MkdirTemp(dir, ".temper-demo-")
	if err != nil {
		return err
	}
	return os.Remove(made)
}

// Write puts records and report into the folder, each file whole or not at all, the report last.
func Write(out string, records []bench.Record, s *bench.Summary) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, r := range records {
		if err := bench.WriteJSON(filepath.Join(out, r.Scenario+".json"), r); err != nil {
			return explain(err)
		}
	}
	return explain(bench.WriteFile(filepath.Join(out, ReportName), func(w io.Writer) error {
		return report.WriteHTML(w, s, report.WorstStep)
	}))
}

func explain(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return exit.New(exit.NoDisk, "make room, or choose another folder with --out", "%w", err)
	}
	return err
}
