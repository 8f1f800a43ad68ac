//go:build pathfence

package main

import (
	"bytes"
	"flag"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/trial"
)

var (
	node = flag.String("node", "", "pathfence-bench-node")
	jar  = flag.String("java", "", "the Java service")
)

// In either language: two arms under each disturbance that does something else, in real processes: every request has a fate, rows are whole,
// and the record says the same as the run. No time is asserted.
func TestSmoke(t *testing.T) {
	names := []string{record.Slow, record.Freeze, "one downstream", record.Saturation, record.NetworkSlow}
	restore := trial.Quick
	trial.Quick = trial.Timeline{WarmUp: 300 * time.Millisecond, Disturbed: time.Second, After: 200 * time.Millisecond, Late: 5 * time.Millisecond}
	defer func() { trial.Quick = restore }()

	file := filepath.Join(t.TempDir(), "record.json")
	var shown, again, gone bytes.Buffer
	execute := func(out *bytes.Buffer, arguments ...string) {
		t.Helper()
		cmd := newCommand()
		cmd.SetArgs(arguments)
		cmd.SetOut(out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// Only C++ has the social network, and neighbours are the same in both; with Java there are the shop and the media service.
	other, slow, calm := "static with shedding", record.SocialSlow, record.Social
	only := []string{slow, "2 CPU neighbours", "1 memory neighbour"}
	if *jar != "" {
		other, slow, calm = "concurrency-limits, Vegas", record.ShopSlow, record.Shop
		only = []string{slow, record.ShopFreeze}
	}
	names = append(names, only...)
	run := []string{"--node", *node, "--java", *jar, "--quick", "--regardless", "--json", file, "--arm", other, "--arm", record.Fence}
	for _, name := range names {
		run = append(run, "--disturbance", name)
	}
	if *jar != "" {
		run = append(run, "--disturbance", record.Media) // which is all of its disturbances
		names = append(names, record.Media, record.MediaSlow, record.MediaFreeze)
	}
	execute(&shown, run...)
	execute(&again, "report", "--regardless", file)
	execute(&gone, run...) // on with a record that lacks nothing
	if shown.String() != again.String() || shown.String() != gone.String() {
		t.Errorf("the run says\n%s\nits record\n%s\nand the run again\n%s", &shown, &again, &gone)
	}

	r, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, path := range []string{record.Innocent, record.Slowed} {
			check(t, r, record.Fence, name, path)
			if name != record.Saturation {
				check(t, r, other, name, path)
			}
		}
	}
	check(t, r, record.Capacity, record.Slow, record.Slowed)
	check(t, r, record.Capacity, record.Freeze, record.Slowed)
	check(t, r, record.Capacity, record.NetworkSlow, record.Slowed)
	check(t, r, record.Capacity, slow, record.Slowed)
	check(t, r, record.Alone, record.None, record.Innocent)
	check(t, r, record.Alone, record.Network, record.Innocent)
	check(t, r, record.Alone, calm, record.Innocent)
	if *jar != "" {
		check(t, r, record.Capacity, record.MediaSlow, record.Slowed)
		check(t, r, record.Alone, record.Media, record.Innocent)
		answered(t, r, record.Shop)
		answered(t, r, record.Media)
	}
	checkPaths(t, r)
	if len(r.Machine.Hashes[filepath.Base(*node)]) != 64 || r.Machine.CPUs == 0 {
		t.Errorf("the machine is %+v", r.Machine)
	}
}

// answered fails where no request to some services was answered in time on some path, in none of their runs: then they do not
// call each other. One run may get nothing on a machine that does other things.
func answered(t *testing.T, r record.Record, services string) {
	t.Helper()
	in := map[string]float64{record.Innocent: 0, record.Slowed: 0}
	for _, row := range r.Rows {
		if record.Calm(row.Disturbance) != services || row.Arm == record.Capacity { // which asks the store alone
			continue
		}
		in[row.Path] += row.Goodput
		for path, figures := range row.Paths {
			in[path] += figures.Goodput
		}
	}
	for path, goodput := range in {
		if goodput == 0 {
			t.Errorf("no answer from the %s in time, %s path", services, path)
		}
	}
}

func check(t *testing.T, r record.Record, arm, disturbance, path string) {
	t.Helper()
	i := slices.IndexFunc(r.Rows, func(row record.Row) bool {
		return row.Arm == arm && row.Disturbance == disturbance && row.Path == path
	})
	if i < 0 {
		t.Errorf("%s, %s: no row for the %s path", arm, disturbance, path)
		return
	}
	row := r.Rows[i]
	if fates := row.Goodput + float64(row.Shed+row.Timeouts); row.Offered == 0 || fates != row.Offered { // of one second
		t.Errorf("%s, %s, %s path: %v fates of %v requests", arm, disturbance, path, fates, row.Offered)
	}
}

// Where a row has several paths, their figures add up to it.
func checkPaths(t *testing.T, r record.Record) {
	t.Helper()
	for _, row := range r.Rows {
		several := map[string]map[string]int{
			record.Social: {record.Innocent: 16, record.Slowed: 8},
			record.Shop:   {record.Innocent: 2},
			record.Media:  {record.Innocent: 5, record.Slowed: 3},
		}[record.Calm(row.Disturbance)][row.Path]
		if row.Arm == record.Capacity {
			several = 0
		}
		offered, fates := 0.0, 0.0
		for _, path := range row.Paths {
			offered += path.Offered
			fates += path.Goodput + float64(path.Shed+path.Timeouts)
		}
		if len(row.Paths) != several || several > 0 && (offered != row.Offered || fates != row.Offered) { // of one second
			t.Errorf("%s, %s, %s: %d paths, %v requests and %v fates of %v", row.Arm, row.Disturbance, row.Path, len(row.Paths), offered, fates, row.Offered)
		}
	}
}

// At saturation arms take turns, each with a time of its own: both are asked from the onset to the end.
func TestTurns(t *testing.T) {
	restore := trial.Quick
	trial.Quick = trial.Timeline{WarmUp: 300 * time.Millisecond, Disturbed: 1700 * time.Millisecond, After: 200 * time.Millisecond, Late: 5 * time.Millisecond}
	defer func() { trial.Quick = restore }()
	file := filepath.Join(t.TempDir(), "record.json")
	cmd := newCommand()
	cmd.SetArgs([]string{"--node", *node, "--quick", "--regardless", "--json", file, "--arm", record.Shared, "--arm", record.Fence, "--disturbance", record.Saturation})
	cmd.SetOut(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	for _, row := range r.Rows {
		if row.Disturbance != record.Saturation {
			continue
		}
		asked[row.Arm]++
		const turns, bins = 3, 10 // half a second each
		for turn := range turns {
			if took := row.Onset[turn*bins : (turn+1)*bins]; slices.Max(took) == 0 {
				t.Errorf("%s, %s path: nothing was asked in turn %d", row.Arm, row.Path, turn)
			}
		}
	}
	if asked[record.Shared] != 2 || asked[record.Fence] != 2 {
		t.Errorf("rows of saturation: %v", asked)
	}
}
