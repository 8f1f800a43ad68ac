package inlab

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/trial"
)

func study(t *testing.T) trial.Study {
	t.Helper()
	d, err := trial.DisturbancesNamed([]string{record.Surge})
	if err != nil {
		t.Fatal(err)
	}
	return trial.Study{Scale: trial.Standard, Timeline: trial.Lab, Arms: trial.Languages["cpp"].Quick(), Disturbances: d, Repetitions: 3}
}

// fake stands for temper-lab: a script that says what a guest would; $repetition is what it was asked for.
func fake(t *testing.T, says string) (Guest, *bytes.Buffer) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "temper-lab")
	script := "#!/bin/sh\nfor repetition; do :; done\n" + says
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	return Guest{Lab: program, Log: &log}, &log
}

const (
	kernel = `echo '{"kernel":"6.18"}'` + "\n"
	row    = `echo "{\"rows\":[{\"arm\":\"fence\",\"repetition\":$((repetition + 1))}]}"` + "\n"
)

// Each repetition that the record lacks is done, no other, and kept as soon as it is whole.
func TestGoesOn(t *testing.T) {
	s := study(t)
	runs := len(s.Runs(0)) // those of three arms, and the innocent path alone
	g, log := fake(t, "echo a word\n"+kernel+strings.Repeat(row, runs))
	r := record.Record{Rows: []record.Row{{Arm: "fence", Repetition: 2}}}
	var kept []int
	err := g.Do(t.Context(), s, []string{"guest"}, &r, func() error { kept = append(kept, len(r.Rows)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{1 + runs, 1 + 2*runs}; !slices.Equal(kept, want) {
		t.Errorf("the record had %v rows when it was kept, not %v", kept, want)
	}
	count := map[int]int{}
	for _, row := range r.Rows {
		count[row.Repetition]++
	}
	if count[1] != runs || count[2] != 1 || count[3] != runs || r.Machine.Kernel != "6.18" {
		t.Errorf("rows by repetition: %v, kernel %q", count, r.Machine.Kernel)
	}
	for _, say := range []string{"a word\n", "repetition 1 of 3 · run 1 of 4 · ", "repetition 3 of 3 · run 4 of 4 · ", " left\n"} {
		if !strings.Contains(log.String(), say) {
			t.Errorf("it did not say %q, but %s", say, log)
		}
	}
}

// What a guest that was lost has said does not count; one that ends early or badly is a failure, of which nothing is kept.
func TestLostGuests(t *testing.T) {
	s := study(t)
	runs := len(s.Runs(0))
	s.Repetitions = 1
	for what, c := range map[string]struct {
		says   string
		rows   int
		failed string
	}{
		"begins again":  {kernel + row + kernel + strings.Repeat(row, runs), runs, ""},
		"ends early":    {kernel + row, 0, "after 1 runs of 4"},
		"fails":         {kernel + strings.Repeat(row, runs) + "exit 3\n", 0, "exit status 3"},
		"says nonsense": {kernel + "echo '{'\n", 0, "the guest said"},
	} {
		g, _ := fake(t, c.says)
		var r record.Record
		err := g.Do(t.Context(), s, nil, &r, func() error { return nil })
		if len(r.Rows) != c.rows || (err == nil) != (c.failed == "") || err != nil && !strings.Contains(err.Error(), c.failed) {
			t.Errorf("%s: %d rows, %v", what, len(r.Rows), err)
		}
	}
}

// The guest's program starts with the libraries that it has here.
func TestPack(t *testing.T) {
	folder := t.TempDir()
	files, err := Pack("/bin/true", "/bin/sh", folder)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(files[Node])
	if err != nil {
		t.Fatal(err)
	}
	if files[program] != "/bin/sh" || files[client] != "/bin/true" || files[home+"/lib/libc.so.6"] == "" || !strings.Contains(string(script), "--library-path /bench/lib /bench/pathfence-bench-node") {
		t.Errorf("%v, %s", files, script)
	}
	hashes, err := files.Hashes()
	if err != nil || len(hashes) != len(files) || len(hashes["libc.so.6"]) != 64 {
		t.Errorf("%v, %v", hashes, err)
	}
	if _, err := Pack("/bin/true", filepath.Join(folder, "absent"), folder); err == nil {
		t.Error("an absent program is packed")
	}
}
