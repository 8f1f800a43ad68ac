package record

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"temper.dev/temper/internal/base/fixture"
)

// example is three repetitions of a fence that holds all bars, and of two arms that do not; the third repetition of the
// fence's frozen run does not count.
func example() Record {
	r := Record{Instructions: map[string]float64{Shared: 20_000, Fence: 24_000}}
	add := func(arm, disturbance, path string, repetition int, offered, goodput, p99 float64) {
		onset := make([]float64, bins)
		for i := range onset {
			onset[i] = p99
		}
		r.Rows = append(r.Rows, Row{Arm: arm, Disturbance: disturbance, Path: path, Repetition: repetition, Figures: Figures{Offered: offered, Goodput: goodput, P50: p99 / 4, P99: p99}, Onset: onset, Valid: true})
	}
	for repetition := 1; repetition <= 3; repetition++ {
		more := float64(repetition)
		add(Alone, None, Innocent, repetition, 150, 150, 46)
		for _, d := range []string{Slow, Freeze} {
			add(Capacity, d, Slowed, repetition, 75, 70, 400)
			add(Fence, d, Innocent, repetition, 150, 150, 46+more)
			add(Fence, d, Slowed, repetition, 250, 62+more, 240)
			add(Shared, d, Innocent, repetition, 150, 10, 1000)
			add(Shared, d, Slowed, repetition, 250, 5, 1000)
			add("static with shedding", d, Innocent, repetition, 150, 150, 50)
			add("static with shedding", d, Slowed, repetition, 250, 30, 900)
		}
		add(Fence, Surge, Innocent, repetition, 1000, 990, 100)
		add(Fence, Surge, Slowed, repetition, 25, 25, 50)
		add(Shared, Surge, Innocent, repetition, 1000, 995, 90)
		add(Shared, Surge, Slowed, repetition, 25, 25, 60)
		add("static with shedding", Surge, Innocent, repetition, 1000, 760, 200)
		add("static with shedding", Surge, Slowed, repetition, 25, 25, 50)
		for _, path := range []string{Innocent, Slowed} {
			add(Shared, Saturation, path, repetition, 5000, 5000, 3)
			add(Fence, Saturation, path, repetition, 4950, 4950, 3)
		}
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Arm == Fence && row.Disturbance == Freeze && row.Repetition == 3 {
			row.Goodput = 0
			row.Judge(0.5, time.Second)
		}
	}
	return r
}

func TestTableAndBars(t *testing.T) {
	var b bytes.Buffer
	r := example()
	r.WriteTable(&b)
	b.WriteByte('\n')
	WriteBars(&b, r.Bars())
	fixture.Golden(t, "table.txt", b.String())
}

// Each bar is missed when what it speaks of is taken away, and no other way.
func TestEachBarCanBeMissed(t *testing.T) {
	missed := func(change func(*Row)) (names []string) {
		r := example()
		for i := range r.Rows {
			change(&r.Rows[i])
		}
		for _, b := range r.Bars() {
			if !b.Holds() {
				names = append(names, b.What)
			}
		}
		return names
	}
	is := func(row *Row, arm, disturbance, path string) bool {
		return row.Arm == arm && row.Disturbance == disturbance && row.Path == path
	}
	for _, c := range []struct {
		what   string
		change func(*Row)
		want   []string
	}{
		{"nothing", func(*Row) {}, nil},
		{"a fifth of the innocent path's answers", func(r *Row) {
			if is(r, Fence, Slow, Innocent) {
				r.Goodput = 120
			}
		}, []string{"healthy path's goodput over its offer", "avoidable loss over the shared pool's"}},
		{"a longer tail", func(r *Row) {
			if is(r, Fence, Slow, Innocent) {
				r.P99 = 56
			}
		}, []string{"healthy path's p99 over its p99 alone"}},
		{"a slow onset", func(r *Row) {
			if is(r, Fence, Slow, Innocent) {
				for i := range 20 {
					r.Onset[i] = 1000
				}
			}
		}, []string{"seconds until the healthy path is back"}},
		{"a starved slowed path", func(r *Row) {
			if is(r, Fence, Slow, Slowed) {
				r.Goodput = 29
			}
		}, []string{"slowed path's goodput over what its downstream can serve", "avoidable loss over the shared pool's"}},
		{"a better shared pool", func(r *Row) {
			if is(r, Shared, Slow, Innocent) {
				r.Goodput = 110
			}
		}, []string{"avoidable loss over the shared pool's", "total goodput over the shared pool's"}},
		{"an arm that is better at everything", func(r *Row) {
			if r.Arm == "static with shedding" && r.Disturbance == Slow {
				r.Goodput += 60
			}
		}, []string{"total goodput over every other arm's", "arms ahead on both paths each time"}},
		{"a surge that is not served", func(r *Row) {
			if is(r, Fence, Surge, Innocent) {
				r.Goodput = 970
			}
		}, []string{"surging path's goodput over the best arm's", "total goodput over every other arm's"}},
		{"a slow fence", func(r *Row) {
			if is(r, Fence, Saturation, Innocent) {
				r.Goodput = 4800
			}
		}, []string{"throughput at saturation over the shared pool's"}},
		{"what does not count", func(r *Row) {
			if is(r, Alone, None, Innocent) {
				r.Judge(1, time.Second)
			}
		}, []string{"healthy path's p99 over its p99 alone", "seconds until the healthy path is back", "healthy path's p99 over its p99 alone", "seconds until the healthy path is back"}},
	} {
		if got := missed(c.change); !slices.Equal(got, c.want) {
			t.Errorf("%s: missed %q, not %q", c.what, got, c.want)
		}
	}
}

// An arm that serves nothing is no reason to leave a bar out.
func TestOver(t *testing.T) {
	if a, b := over(150, 0), over(150, 50); a != 150 || b != 3 {
		t.Errorf("%v and %v", a, b)
	}
}

func TestTooManyInstructions(t *testing.T) {
	const most = 25_000
	for _, arm := range []string{Fence, Learned} {
		for _, counted := range []float64{most, most + 1} {
			r := Record{Instructions: map[string]float64{Shared: 20_000, arm: counted}}
			if bars := r.Bars(); len(bars) != 1 || bars[0].Holds() != (counted == most) {
				t.Errorf("%+v", bars)
			}
		}
	}
}

func TestBack(t *testing.T) {
	usual := make([]float64, bins)
	for i := range usual {
		usual[i] = 100
	}
	late := func(n int, by float64) Row {
		row := Row{Onset: slices.Clone(usual)}
		for i := range n {
			row.Onset[i] *= by
		}
		return row
	}
	for _, c := range []struct {
		n    int
		by   float64
		want float64
	}{{0, 1, 0}, {60, 1.2, 0}, {4, 10, 0.2}, {12, 2, 0.5}, {60, 2, 3}} {
		if got := Back(late(c.n, c.by), Row{Onset: usual}); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d bins at %v times: back after %v s, not %v", c.n, c.by, got, c.want)
		}
	}
	if got := Back(Row{}, Row{Onset: usual}); !math.IsNaN(got) {
		t.Errorf("what was not measured is back after %v s", got)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{[]float64{3}, Spread{3, 3, 3, 1}},
		{[]float64{4, 1, 3, 2}, Spread{2.5, 1, 4, 4}},
		{[]float64{5, 1, 9, 2, 3}, Spread{3, 1, 9, 5}},
	} {
		if got := spread(c.values); got != c.want {
			t.Errorf("%v: %+v", c.values, got)
		}
	}
	if s := spread(nil); !math.IsNaN(s.Median) || s.String() != "–" {
		t.Errorf("of nothing: %v", s)
	}
}

// Each topology's paths are compared with what they were alone in the same topology, which is no disturbance itself.
func TestCalm(t *testing.T) {
	for disturbance, want := range map[string]string{
		Slow: None, Freeze: None, Surge: None, "network of others": None, "shopping": None,
		Network: Network, NetworkSlow: Network, NetworkFreeze: Network,
		Social: Social, SocialSlow: Social, SocialFreeze: Social,
		Shop: Shop, ShopSlow: Shop, ShopFreeze: Shop,
		Media: Media, MediaSlow: Media, MediaFreeze: Media,
	} {
		if got := Calm(disturbance); got != want {
			t.Errorf("%s is compared with %s", disturbance, got)
		}
	}
	for _, disturbance := range Isolation {
		if calm := Calm(disturbance); slices.Contains(undisturbed, disturbance) || !slices.Contains(undisturbed, calm) {
			t.Errorf("%s or %s is on the wrong side", disturbance, calm)
		}
	}
}
