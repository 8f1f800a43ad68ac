package trial

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/stage"
	"temper.dev/temper/pathfence/go/core"
	"temper.dev/temper/pathfence/go/core/sim"
)

func study(t *testing.T) Study {
	t.Helper()
	disturbances, err := DisturbancesNamed(TableDisturbances)
	if err != nil {
		t.Fatal(err)
	}
	return Study{Scale: Standard, Timeline: Full, Arms: Languages["cpp"].Table, Disturbances: disturbances, Repetitions: 2, Seed: 7}
}

func names(runs []Run) (list []string) {
	for _, r := range runs {
		list = append(list, r.Disturbance.Name+" / "+r.Arm.Name)
	}
	return list
}

// A repetition has each arm under each disturbance once, in an order of its own that the seed gives; saturation has them in
// turns.
func TestInterleaved(t *testing.T) {
	s := study(t)
	first, second := names(s.repetition(0)), names(s.repetition(1))
	if slices.Equal(first, second) {
		t.Error("two repetitions have one order")
	}
	if !slices.Equal(first, names(s.repetition(0))) {
		t.Error("equal seeds give another order")
	}
	var want []string
	for _, d := range TableDisturbances {
		for _, a := range Languages["cpp"].Table {
			if d != record.Saturation {
				want = append(want, d+" / "+a.Name)
			}
		}
	}
	want = append(want, "slow tenfold / capacity", "frozen 400 of 500 ms / capacity", "none / alone", "saturation / shared pool and fence, in turns")
	slices.Sort(want)
	for _, got := range [][]string{first, second} {
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("a repetition has %q, not %q", got, want)
		}
	}
	for _, r := range s.repetition(1) {
		if r.Repetition != 2 || r.Seed != 8 {
			t.Errorf("repetition %d with seed %d", r.Repetition, r.Seed)
		}
	}
}

// Every fence's configuration is one that a fence takes, with a class for each path, but where it learns them; and each variant
// lacks one part.
func TestFences(t *testing.T) {
	seen := map[string]string{}
	for _, a := range Languages["cpp"].All() {
		line := a.service(Server{Scale: Standard, Paths: []string{record.Innocent, record.Slowed}}, map[string][]int{record.Innocent: {1}, record.Slowed: {2}})
		i := slices.Index(line, "--fence")
		if strings.HasPrefix(a.Name, record.Fence) != (i >= 0) {
			t.Errorf("%s is started with %q", a.Name, line)
		}
		if i < 0 {
			continue
		}
		var config core.Config
		if err := json.Unmarshal([]byte(line[i+1]), &config); err != nil {
			t.Fatal(err)
		}
		classes := 2
		if a.Name == learnedFence.Name {
			classes = 0
		}
		if _, err := core.New(config, 0); err != nil || len(config.Classes) != classes || config.Workers != 16 {
			t.Errorf("%s: %v, %+v", a.Name, err, config)
		}
		kind := fmt.Sprint(config.Without, len(config.Classes))
		if other, same := seen[kind]; same {
			t.Errorf("%s and %s are the same", a.Name, other)
		}
		seen[kind] = a.Name
	}
	if len(seen) != 9 {
		t.Errorf("%d fences, not the fence, the one that learns its classes, and 7 without a part", len(seen))
	}
}

// What stands before the shared service passes on what travels if, and only if, that is fenced.
func TestOnward(t *testing.T) {
	for _, l := range Languages {
		for _, a := range l.All() {
			if got := len(a.onward()) > 0; got != strings.HasPrefix(a.Name, record.Fence) {
				t.Errorf("%s: %v", a.Name, got)
			}
		}
	}
}

func TestActions(t *testing.T) {
	at := func(d Disturbance) (times []time.Duration) {
		for _, a := range d.actions(Timeline{WarmUp: time.Second, Disturbed: time.Second, After: time.Second}, nil, make([]*stage.Process, len(d.neighbours))) {
			times = append(times, a.at)
		}
		return times
	}
	const ms = time.Millisecond
	for name, want := range map[string][]time.Duration{
		record.None:   nil,
		record.Surge:  nil,
		record.Slow:   {1000 * ms, 2000 * ms},
		record.Freeze: {1000 * ms, 1400 * ms, 1500 * ms, 1900 * ms},
		"log flush":   {1000 * ms, 1060 * ms, 1500 * ms, 1560 * ms},
		"burst":       nil,

		"1 CPU neighbour":     {1000 * ms, 2000 * ms},
		"2 memory neighbours": {1000 * ms, 2000 * ms, 1000 * ms, 2000 * ms},
		"big spike":           {1000 * ms, 2000 * ms},
	} {
		d, err := DisturbancesNamed([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if got := at(d[0]); !slices.Equal(got, want) {
			t.Errorf("%s: at %v, not %v", name, got, want)
		}
	}
}

func TestSurge(t *testing.T) {
	innocent, slowed := surge(Standard, Full)
	for _, c := range []struct {
		at               time.Duration
		innocent, slowed float64
	}{{0, 150, 250}, {Full.WarmUp, 1000, 25}, {Full.over() - 1, 1000, 25}, {Full.over(), 150, 250}} {
		if in, slow := innocent.at(c.at), slowed.at(c.at); in != c.innocent || slow != c.slowed {
			t.Errorf("at %v: %v and %v a second", c.at, in, slow)
		}
	}
}

func TestBurst(t *testing.T) {
	innocent, slowed := burst(Standard, Full)
	for at, want := range map[time.Duration]float64{0: 250, Full.WarmUp: 2000, Full.WarmUp + time.Second - 1: 2000, Full.WarmUp + time.Second: 250} {
		if in, slow := innocent.at(at), slowed.at(at); in != 150 || slow != want {
			t.Errorf("at %v: %v and %v a second", at, in, slow)
		}
	}
}

// No rate is above its peak: arrivals would be missing.
func TestPeaks(t *testing.T) {
	if n := len(Disturbances()); n != len(TableDisturbances)+len(sim.Traces)+20 {
		t.Errorf("%d disturbances", n)
	}
	for _, d := range Disturbances() {
		for _, f := range d.flows(Standard, Full, record.Innocent, record.Slowed) {
			for at := time.Duration(0); at < Full.end(); at += 10 * time.Millisecond {
				if r := f.Rate(at); r > f.Peak || r < 0 {
					t.Fatalf("%s, %s path: %v a second at %v, the peak is %v", d.Name, f.Path, r, at, f.Peak)
				}
			}
		}
	}
}

func TestChoice(t *testing.T) {
	for name, n := range map[string]int{"traces": 6, "networks": 3, "social": 3, "shops": 3, "media": 3, "neighbours": 5, "all": len(Disturbances()), record.Slow: 1} {
		if chosen, err := DisturbancesNamed([]string{name}); err != nil || len(chosen) != n {
			t.Errorf("%q are %d disturbances, %v", name, len(chosen), err)
		}
	}
	for name, l := range Languages {
		if _, err := l.Named([]string{"fence", "no such arm"}); err == nil || !strings.Contains(err.Error(), "fence without lending") {
			t.Errorf("%s: an unknown arm: %v", name, err)
		}
		if all, err := l.Named([]string{"all"}); err != nil || len(all) != len(l.Table)+1+7 {
			t.Errorf("%s: all are %d arms, %v", name, len(all), err)
		}
		if n := len(l.Quick()); n != 3 {
			t.Errorf("%s: a look has %d arms", name, n)
		}
	}
}

// Arms that nobody measures at saturation have no run there.
func TestNoTurns(t *testing.T) {
	s := study(t)
	arms, err := Languages["java"].Named([]string{"concurrency-limits, Vegas"})
	if err != nil {
		t.Fatal(err)
	}
	s.Language, s.Arms = "java", arms
	if s.Disturbances, err = s.Choose([]string{record.Saturation}); err != nil {
		t.Fatal(err)
	}
	if got := names(s.repetition(0)); !slices.Equal(got, []string{"none / alone"}) {
		t.Errorf("a repetition has %q", got)
	}
}
