package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	return WriteFile(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// WriteFile writes a file whole or not at all: an interrupted run leaves the old one, or none.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
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
	if _, err := f.Write(content.Bytes()); err != nil {
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
