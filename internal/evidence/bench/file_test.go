package bench_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
)

func TestRecordSurvivesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	want := benchtest.Record(t, "memcached", 3, "cpuidle", "temper")
	if err := bench.WriteJSON(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := bench.ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("got %s\nwant %s", a, b)
	}
}

func TestReadRecordRefusesOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	for text, want := range map[string]string{
		`{`:               "unexpected end of JSON input",
		`{"schema":"v0"}`: `seed 0: schema is "v0", want "temper.dev/record/v1"`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := bench.ReadRecord(path); err == nil || err.Error() != path+": "+want {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestWriteFileIsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	write := func(text string, err error) error {
		return bench.WriteFile(path, func(w io.Writer) error {
			fmt.Fprint(w, text)
			return err
		})
	}
	if err := write("first", nil); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := write("second", broken); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := bench.WriteJSON(filepath.Join(dir, "folder"), 1); err == nil {
		t.Error("a folder was replaced")
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "first" {
		t.Errorf("after failures the file holds %q (%v)", text, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("leftovers: %v (%v)", entries, err)
	}
}

func TestWriteFileReplacesNothingButFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, link, target := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "target")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that writing to the pipe does not wait
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for path, want := range map[string]fs.FileMode{pipe: fs.ModeNamedPipe, link: fs.ModeSymlink} {
		if err := bench.WriteJSON(path, 7); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != want {
			t.Fatalf("%s was replaced: %v (%v)", path, info.Mode(), err)
		}
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "7\n" {
		t.Errorf("behind the link: %q (%v)", text, err)
	}
	text := make([]byte, 2)
	if _, err := io.ReadFull(reader, text); err != nil || string(text) != "7\n" {
		t.Errorf("from the pipe: %q (%v)", text, err)
	}
}

func TestCompare(t *testing.T) {
	base := `{"kernel":"6.18","seed":1,"arms":[{"steps":[{"p99_ms":7.10,"valid":true}]}]}`
	for _, test := range []struct {
		b    string
		want []string
	}{
		{base, nil},
		{`{"seed":1, "arms":[{"steps":[{"valid":true,"p99_ms":7.10}]}], "kernel":"6.18"}`, nil},
		{`{"kernel":"6.18","seed":1,"arms":[{"steps":[{"p99_ms":7.1000000001,"valid":true}]}]}`, []string{"arms[0].steps[0].p99_ms: 7.10 and 7.1000000001"}},
		{`{"kernel":"6.18","seed":1,"arms":[{"steps":[]}]}`, []string{"arms[0].steps: a list of 1 and a list of 0"}},
		{`{"kernel":"6.18","arms":[{"steps":[{"p99_ms":7.10,"valid":false}]}],"new":null}`,
			[]string{"arms[0].steps[0].valid: true and false", "new: (absent) and null", "seed: 1 and (absent)"}},
		{`[]`, []string{`: {"arms":[{"steps":[{"p99_ms":7.10,"valid":true}]}],"kernel":… and a list of 0`}},
	} {
		differences, err := bench.Compare([]byte(base), []byte(test.b))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range differences {
			got = append(got, d.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", test.b, got, test.want)
		}
	}
	if _, err := bench.Compare([]byte(base), []byte("{")); err == nil || err.Error() != "record 2 of 2: unexpected EOF" {
		t.Errorf("got %v", err)
	}
}

// Whoever means standard output gets no file of that name.
func TestNoFileIsCalledMinus(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := bench.WriteJSON("-", 1); exit.StatusOf(err) != exit.Usage {
		t.Errorf("%v; want status %d", err, exit.Usage)
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("there is a file -")
	}
}
