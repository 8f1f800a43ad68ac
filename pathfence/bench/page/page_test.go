package page

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"temper.dev/temper/pathfence/bench/record"
)

// sample is a record of one repetition in which the fence keeps the innocent path whole and an arm of an odd name does not.
func sample() record.Record {
	const odd = "<b>odd</b>"
	r := record.Record{Machine: record.Machine{Kernel: "6.18", CPUs: 3, Lab: true}, Seed: 7, Plan: map[string]any{
		"language": "cpp", "arms": []string{odd, record.Fence}, "disturbances": []string{record.Slow}, "repetitions": 1,
	}}
	add := func(arm, disturbance, path string, goodput, ms float64) {
		onset := make([]float64, 60)
		for i := range onset {
			onset[i] = ms * 5 // of five requests in 50 ms
		}
		r.Rows = append(r.Rows, record.Row{Arm: arm, Disturbance: disturbance, Path: path, Repetition: 1, Valid: true, Onset: onset,
			Figures: record.Figures{Offered: 100, Goodput: goodput, P50: ms, P99: 2 * ms}})
	}
	add(record.Alone, record.None, record.Innocent, 100, 10)
	add(record.Capacity, record.Slow, record.Slowed, 40, 10)
	for _, arm := range []struct {
		name    string
		goodput float64
	}{{record.Fence, 100}, {record.Shared, 20}, {odd, 25}} {
		add(arm.name, record.Slow, record.Innocent, arm.goodput, 1000/arm.goodput)
		add(arm.name, record.Slow, record.Slowed, arm.goodput/5, 200)
	}
	r.Rows[len(r.Rows)-1].Valid, r.Rows[len(r.Rows)-1].InvalidReason = false, "others had 2 CPUs"
	return r
}

func write(t *testing.T, r record.Record) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, []Named{{"first", r}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPage(t *testing.T) {
	r := sample()
	got := write(t, r)
	for _, want := range []string{
		"&lt;b&gt;odd&lt;/b&gt;", "others had 2 CPUs", `<span style="width:25%">`, `>slow tenfold</text>`, `<td class="good">holds</td>`, `<td class="bad">`,
		`build/pathfence/bench/bench lab --lab bin/temper-lab --node build/pathfence/bench/pathfence-bench-node --arm &#34;&lt;b&gt;odd`, "--repetitions 1 --seed 7",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(got, "<b>odd") {
		t.Error("a name is not escaped")
	}
	if n := strings.Count(got, "innocent"); n != 1 || !strings.Contains(got, "<td>healthy</td>") { // once, to say what records call it
		t.Errorf("the page says innocent %d times", n)
	}
	if strings.Count(got, "<table>") != strings.Count(got, `<div class="wide" tabindex="0" role="region"`) {
		t.Error("a table cannot scroll")
	}
	if strings.Contains(got, "<script") || strings.Contains(got, "http") {
		t.Error("the page loads something")
	}
	r.Machine.Lab, r.Plan = false, map[string]any{"language": "java"}
	if got := write(t, r); !strings.Contains(got, "--java ") || strings.Contains(got, "bench lab") || !strings.Contains(got, "a new run gives other figures") {
		t.Error("the page does not say how real processes are measured again")
	}
}

// The fence comes first, with the first look; others follow, each with one of its own; what is alone comes last.
func TestCharts(t *testing.T) {
	list := charts(sample())
	if len(list) != 1 {
		t.Fatalf("%d charts", len(list))
	}
	c := list[0]
	looks := map[int]bool{}
	for i, s := range c.Series {
		looks[s.Class] = true
		if first, ours := i == 0, s.Label == record.Fence; first != ours || ours != (s.Class == 0) {
			t.Errorf("series %d is %s with look %d", i, s.Label, s.Class)
		}
		if len(s.Line) != 15 {
			t.Errorf("%s has %d points", s.Label, len(s.Line))
		}
	}
	if len(looks) != 4 || c.Series[3].Label != record.Alone {
		t.Errorf("%d looks of %d series", len(looks), len(c.Series))
	}
	// Twenty requests in 200 ms, of 10 ms each.
	if p := c.Series[0].Line[2]; p.X != 0.5 || p.Y != 10 {
		t.Errorf("the third point is %+v", p)
	}
}

// What was not measured is not called missed.
func TestVerdict(t *testing.T) {
	holds, missed, none := record.Bar{Got: record.Spread{Median: 1, N: 1}, Bound: 1}, record.Bar{Got: record.Spread{Median: 0.5, N: 1}, Bound: 1}, record.Bar{Got: record.Spread{Median: math.NaN()}, Bound: 1}
	for _, c := range []struct {
		bars bars
		want string
		hold bool
	}{
		{bars{holds, holds}, "2 of 2 bars hold", true},
		{bars{holds, missed}, "1 of 2 bars hold, 1 missed", false},
		{bars{none, holds, missed, none}, "1 of 4 bars hold, 1 missed, 2 not measured", false},
	} {
		if got := c.bars.String(); got != c.want || c.bars.Hold() != c.hold {
			t.Errorf("%q, %v", got, c.bars.Hold())
		}
	}
}
