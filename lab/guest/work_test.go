package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// third ends the first two runs with status 0, and the third with status 3.
const third = `; echo . >> runs; [ $(grep -c . runs) -lt 3 ] || exit 3`

func TestWorkIsCounted(t *testing.T) {
	program := buildLoad(t, "work")
	for _, test := range []struct {
		name, count, text, script string
		units                     uint64
		said                      string
	}{
		{"runs", "runs", "", "echo a; echo b" + third, 2, "exit status 3 (b)\n"},
		{"lines of both outputs", "lines", "", "echo a; echo b >&2" + third, 6, "exit status 3 (b)\n"},
		{"lines that overwrite each other", "lines", "", `printf 'a\rb\r\n\nc'` + third, 9, "exit status 3 (c)\n"},
		{"a line that is long", "lines", "", `printf '%2000d\n' 1` + third, 3, "exit status 3 (" + strings.Repeat(" ", 512) + ")\n"},
		{"a counter", "counter", "frame=", `printf 'frame= 5 q=1\rframe=  9 q=2\n'` + third, 27, "exit status 3 (frame=  9 q=2)\n"},
		{"a counter twice in a line", "counter", "n=", "echo n=2 n=3" + third, 9, "exit status 3 (n=2 n=3)\n"},
		{"a counter that is not there", "counter", "n=", "echo m=2" + third, 0, "exit status 3 (m=2)\n"},
		{"no word", "runs", "", "exit 1", 0, "exit status 1 (it printed nothing)\n"},
		{"a signal", "runs", "", "kill -9 $$", 0, "signal 9 (it printed nothing)\n"},
	} {
		dir := t.TempDir()
		units, said := work(t, program, dir, test.count, test.text, "/bin/sh", "-c", test.script)
		if units != test.units || said != test.said {
			t.Errorf("%s: %d units, want %d; said %q, want %q", test.name, units, test.units, said, test.said)
		}
	}
	if _, said := work(t, program, t.TempDir(), "runs", "", "/none"); said != "start /none: No such file or directory\n" {
		t.Errorf("a program that is not there: said %q", said)
	}
}

// work runs a worker until what it runs has failed, and returns what it has counted in slot 1, and what it says.
func work(t *testing.T, program, dir string, words ...string) (units uint64, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"1", "1"}, words...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LADDER_DIR="+dir)
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Run(); err == nil {
		t.Fatal("a worker has ended without an error")
	}
	file, err := os.ReadFile(filepath.Join(dir, "work"))
	if err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(file[64:]), errs.String()
}
