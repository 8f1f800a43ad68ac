package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"temper.dev/temper/internal/base/exit"
)

// ReadRecord reads a record from a file.
func ReadRecord(path string) (Record, error) {
	var r Record
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if err := checkRecord(r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// WriteJSON writes v to a file as indented JSON, whole or not at all.
func WriteJSON(path string, v any) error {
	return WriteFile(path, func(w io.Writer) error { return EncodeJSON(w, v) })
}

// EncodeJSON writes v as indented JSON.
func EncodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteFile writes a file whole or not at all: an interrupted run leaves the old one, or none. What is no regular file
// (a pipe, /dev/null) is written to and never replaced. A file "-" would be one that nobody meant.
func WriteFile(path string, write func(io.Writer) error) error {
	if path == "-" {
		return exit.New(exit.Usage, "name a file", "- is not standard output here")
	}
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return replace(path, content.Bytes())
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return writeInto(path, content.Bytes())
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // a link stays a link
		return err
	}
	return replace(path, content.Bytes())
}

func writeInto(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// replace puts a new file in the place of a regular one, or of none.
func replace(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()           // may be closed already
			os.Remove(f.Name()) // gone already after the rename
		}
	}()
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil { // CreateTemp makes it private
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
