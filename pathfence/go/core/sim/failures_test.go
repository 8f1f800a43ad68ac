package sim

import (
	"fmt"
	"testing"

	"temper.dev/temper/pathfence/go/core"
)

// What clients and services do that a fence must stand; ../../../spec/failures.md has the whole list.

func (s Scale) fence() Arm { return NewFence(s.Workers, s.Paths, s.SLO, core.Parts{}) }

// each runs a check at some scales, as a test of its own: few and many workers, few and many paths.
func each(t *testing.T, name string, check func(t *testing.T, s Scale)) {
	for _, s := range []Scale{Scales[0], Scales[2], Scales[4], Scales[7]} {
		t.Run(s.Name+"/"+name, func(t *testing.T) {
			t.Parallel()
			check(t, s)
		})
	}
}

// over gives the medians over the seeds of what a run gives.
func over(run func(seed uint64) []float64) (out []float64) {
	var by [][]float64
	for seed := uint64(1); seed <= seeds; seed++ {
		for i, v := range run(seed) {
			if i == len(by) {
				by = append(by, nil)
			}
			by[i] = append(by[i], v)
		}
	}
	for _, v := range by {
		out = append(out, median(v))
	}
	return out
}

func share(f Figures) float64 { return float64(f.Good) / float64(f.Offered) }

// innocent is what the paths get whose downstreams are not disturbed: their goodput over that alone, their p99 over that
// alone, and when they are back, in milliseconds.
func innocent(w World, results, alone []Result) (goodput, tail, back float64) {
	in, calm := Measure(innocents(results), -1, Onset, Over, w.SLO), Measure(alone, -1, Onset, Over, w.SLO)
	return share(in) / share(calm), float64(in.P99) / float64(calm.P99), float64(Back(innocents(results), alone)) / float64(ms)
}

// Clients that do not heed a refusal, and ask again every 10 ms for a second: it costs the other paths nothing, and the
// storm ends with what has caused it.
func TestRetryStorm(t *testing.T) {
	for _, disturbance := range []string{"slow 10", "freeze", "hang"} {
		each(t, disturbance, func(t *testing.T, s Scale) {
			v := over(func(seed uint64) []float64 {
				w := s.World(disturbance, 1, seed)
				w.Paths[0].Stubborn = true
				results := w.Run(s.fence())
				goodput, tail, back := innocent(w, results, s.alone(w))
				storm, after := Measure(results, 0, Onset, Over, w.SLO), Measure(results, 0, Over+2*patience, End, w.SLO)
				times := float64(storm.Offered) / float64(Over-Onset) * float64(second) / s.Rate
				return []float64{goodput, tail, back, times, share(after)}
			})
			t.Logf("innocent %.3f, p99 x%.2f, back after %.0f ms; asked for %.1f times as much; after it %.3f", v[0], v[1], v[2], v[3], v[4])
			if v[0] < 0.99 || v[1] > 1.2 || v[2] > 500 {
				t.Error("the other paths must get 0.99 of what they get alone, with at most 1.20 of that p99, within 0.5 s")
			}
			if v[3] < 2 {
				t.Error("it was no storm")
			}
			if v[4] < 0.99 {
				t.Error("the storm goes on when its cause is gone")
			}
		})
	}
}

// One request in twenty of every path takes ten times as long as the others of its class. In a small pool some of those
// meet, so what the paths get is held against what they get from the shared pool in quiet times; and where a class has one
// worker by right, those behind a long one wait for a loan: 1.4 of that p99 with 8 workers and 12 paths.
func TestMixedCost(t *testing.T) {
	mixed := func(w World) World {
		for i := range w.Downs {
			w.Downs[i].Heavy = 10
		}
		return w
	}
	for _, disturbance := range []string{"none", "slow 10", "freeze"} {
		each(t, disturbance, func(t *testing.T, s Scale) {
			v := over(func(seed uint64) []float64 {
				w, quiet := mixed(s.World(disturbance, 1, seed)), mixed(s.World("none", 1, seed))
				results := w.Run(s.fence())
				goodput, tail, _ := innocent(w, results, innocents(quiet.Run(NewShared(s.Workers, false))))
				own := Measure(results, 0, Onset, Over, w.SLO)
				shared := Measure(w.Run(NewShared(s.Workers, false)), 0, Onset, Over, w.SLO)
				return []float64{goodput, tail, float64(own.Good) / float64(max(1, shared.Good))}
			})
			isolates(t, v, 1.5)
		})
	}
}

// isolates holds what the innocent paths get to what they get undisturbed, goodput and p99, and what the disturbed path gets
// to what the shared pool gives it.
func isolates(t *testing.T, v []float64, mostTail float64) {
	t.Helper()
	t.Logf("innocent %.3f, p99 x%.2f; the disturbed path %.3f of the shared pool's", v[0], v[1], v[2])
	if v[0] < 0.99 || v[1] > mostTail {
		t.Errorf("the innocent paths must get 0.99 of what they get undisturbed, with at most %.2f of that p99", mostTail)
	}
	if v[2] < 0.99 {
		t.Error("the disturbed path must get 0.99 of what the shared pool gives it")
	}
}

// A path of three requests a second beside one that is disturbed; and one whose own downstream is slow: it learns nothing,
// and loses nothing by it.
func TestLowRate(t *testing.T) {
	for _, disturbance := range []string{"slow 10", "freeze"} {
		each(t, disturbance, func(t *testing.T, s Scale) {
			v := over(func(seed uint64) []float64 {
				rare := s.World(disturbance, 1, seed)
				for p := 1; p < s.Paths; p++ {
					rare.Paths[p].Rate = []Step{{0, 3}}
				}
				goodput, tail, _ := innocent(rare, rare.Run(s.fence()), s.alone(rare))
				own := s.World(disturbance, 1, seed)
				own.Paths[0].Rate = []Step{{0, 3}}
				got := Measure(own.Run(s.fence()), 0, Onset, Over, own.SLO)
				shared := Measure(own.Run(NewShared(s.Workers, false)), 0, Onset, Over, own.SLO)
				return []float64{goodput, tail, float64(got.Good) / float64(shared.Good)}
			})
			isolates(t, v, 1.2)
		})
	}
}

// The service itself stands still, as in a collector's pause, once or again and again, in quiet times and in a surge: it
// serves about as much in time as the shared pool does, and a moment later everything again.
func TestPause(t *testing.T) {
	const moment = 500 * ms
	for _, c := range []struct {
		load  string
		pause int64
		times int64 // twice a second
	}{{"none", 300 * ms, 1}, {"surge", 30 * ms, 1}, {"surge", 300 * ms, 1}, {"surge", 100 * ms, 16}} {
		each(t, fmt.Sprintf("%s, %d times %d ms", c.load, c.times, c.pause/ms), func(t *testing.T, s Scale) {
			v := over(func(seed uint64) []float64 {
				w := s.World(c.load, 1, seed)
				at := Onset + second
				for range c.times {
					w.Pauses = append(w.Pauses, Step{at, float64(c.pause) / float64(second)})
					at += second / 2
				}
				results, shared := w.Run(s.fence()), w.Run(NewShared(s.Workers, false))
				whole, after := Measure(results, -1, Onset, Over, w.SLO), Measure(results, -1, at+c.pause+moment, Over, w.SLO)
				return []float64{float64(whole.Good) / float64(Measure(shared, -1, Onset, Over, w.SLO).Good), share(after)}
			})
			t.Logf("%.3f of the shared pool's; afterwards %.4f", v[0], v[1])
			if v[0] < 0.99 || v[1] < 0.999 {
				t.Error("it must be 0.99 of the shared pool's, and afterwards all that is asked for")
			}
		})
	}
}
