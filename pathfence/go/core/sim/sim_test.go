package sim

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"temper.dev/temper/pathfence/go/core"
)

var all = flag.Bool("all", false, "print every arm at every scale and disturbance; takes long")

const seeds = 3

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// figures of one arm, as medians over the seeds.
type figures struct {
	innocent float64 // goodput over offer
	tail     float64 // p99 over p99 alone
	back     float64 // ms
	slowed   float64 // goodput over what can be served
	total    float64 // goodput, requests
	lost     float64 // avoidably: neither served in time nor beyond what can be served
}

func innocents(rs []Result) []Result {
	return slices.DeleteFunc(slices.Clone(rs), func(r Result) bool { return r.Path == 0 })
}

// setting is a world for each seed, and what is known of it without any arm.
type setting struct {
	scale    Scale
	worlds   []World
	alone    [][]Result
	servable []int
}

func (s Scale) setting(build func(seed uint64) World) *setting {
	out := &setting{scale: s}
	for seed := uint64(1); seed <= seeds; seed++ {
		w := build(seed)
		out.worlds = append(out.worlds, w)
		out.alone = append(out.alone, s.alone(w))
		out.servable = append(out.servable, Servable(w))
	}
	return out
}

// alone is what the paths but the first get, each with the shared pool to itself and nothing disturbed.
func (s Scale) alone(w World) (results []Result) {
	w.Downs = append([]Downstream(nil), w.Downs...)
	w.Downs[0].Speed, w.Pauses = nil, nil
	for p := 1; p < s.Paths; p++ {
		results = append(results, w.Only(p).Run(NewShared(s.Workers, false))...)
	}
	return results
}

func (s *setting) run(arm func() Arm) figures {
	var innocent, tail, back, slowed, total, lost []float64
	for i, w := range s.worlds {
		rs := w.Run(arm())
		in, alone := Measure(innocents(rs), -1, Onset, Over, w.SLO), Measure(s.alone[i], -1, Onset, Over, w.SLO)
		path0 := Measure(rs, 0, Onset, Over, w.SLO)
		innocent = append(innocent, float64(in.Good)/float64(in.Offered))
		tail = append(tail, float64(in.P99)/float64(alone.P99))
		back = append(back, float64(Back(innocents(rs), s.alone[i]))/float64(ms))
		slowed = append(slowed, float64(path0.Good)/float64(max(1, s.servable[i])))
		total = append(total, float64(in.Good+path0.Good))
		lost = append(lost, float64(in.Offered-in.Good+max(0, min(path0.Offered, s.servable[i])-path0.Good)))
	}
	return figures{median(innocent), median(tail), median(back), median(slowed), median(total), median(lost)}
}

// arms are those of the table that need no foreign code.
func (s Scale) arms() []struct {
	name string
	new  func() Arm
} {
	fence := func(without core.Parts) func() Arm {
		return func() Arm { return NewFence(s.Workers, s.Paths, s.SLO, without) }
	}
	return []struct {
		name string
		new  func() Arm
	}{
		{"fence", fence(core.Parts{})},
		{"shared pool", func() Arm { return NewShared(s.Workers, false) }},
		{"shared, shedding", func() Arm { return NewShared(s.Workers, true) }},
		{"async, unbounded", func() Arm { return NewAsync(false) }},
		{"static bulkhead", func() Arm { return NewStatic(s.Workers, s.Paths, false) }},
		{"static, shedding", func() Arm { return NewStatic(s.Workers, s.Paths, true) }},
		{"fence, no lending", fence(core.Parts{NoLend: true})},
		{"fence, no protection", fence(core.Parts{NoProtect: true})},
		{"fence, no shedding", fence(core.Parts{NoShed: true})},
		{"fence, no newest-first", fence(core.Parts{NoNewest: true})},
		{"fence, no learning", fence(core.Parts{NoLearn: true})},
		{"fence, no excitation", fence(core.Parts{NoExcite: true})},
		{"fence, no panic", fence(core.Parts{NoPanic: true})},
	}
}

var shapes = map[int]string{1: "exponential", 4: "Erlang-4"}

// The bars of the path plane hold in the model at every scale: with the downstream of one path slowed tenfold, or
// frozen for 400 of every 500 ms.
func TestBars(t *testing.T) {
	for _, s := range Scales {
		for shape, of := range shapes {
			for _, d := range []string{"slow 10", "freeze"} {
				t.Run(fmt.Sprintf("%s/%s/%s", s.Name, of, d), func(t *testing.T) {
					t.Parallel()
					at := s.setting(func(seed uint64) World { return s.World(d, shape, seed) })
					f := at.run(s.arms()[0].new)
					shared := at.run(s.arms()[1].new)
					t.Logf("innocent %.3f, p99 x%.2f, back after %.0f ms; slowed %.2f; total %.0f, shared pool %.0f; lost %.0f, shared pool %.0f",
						f.innocent, f.tail, f.back, f.slowed, f.total, shared.total, f.lost, shared.lost)
					for _, bar := range []struct {
						what string
						ok   bool
					}{
						{"the innocent paths' goodput is at least 0.99 of their offer", f.innocent >= 0.99},
						{"their p99 is at most 1.20 of that alone", f.tail <= 1.2},
						{"they are back within 0.5 s", f.back <= 500},
						{"the slowed path gets at least 0.85 of what can be served", f.slowed >= 0.85},
						{"avoidable loss is at most 0.05 of the shared pool's", f.lost <= 0.05*shared.lost},
					} {
						if !bar.ok {
							t.Errorf("it does not hold that %s", bar.what)
						}
					}
				})
			}
		}
	}
}

// A surge of one path while the other is nearly idle gets what the best arm would give it.
func TestSurge(t *testing.T) {
	for _, s := range Scales {
		for shape, of := range shapes {
			t.Run(s.Name+"/"+of, func(t *testing.T) {
				t.Parallel()
				var fence, best []float64
				for seed := uint64(1); seed <= seeds; seed++ {
					w := s.World("surge", shape, seed)
					good := func(a Arm) float64 { return float64(Measure(w.Run(a), 1, Onset, Over, w.SLO).Good) }
					fence = append(fence, good(NewFence(s.Workers, s.Paths, s.SLO, core.Parts{})))
					best = append(best, max(good(NewShared(s.Workers, false)), good(NewShared(s.Workers, true)), good(NewAsync(false))))
				}
				t.Logf("fence %.0f, best arm %.0f", median(fence), median(best))
				if median(fence) < 0.99*median(best) {
					t.Errorf("the fence serves %.0f in time, the best arm %.0f", median(fence), median(best))
				}
			})
		}
	}
}

// A surge in which all that is called stands still now and then, as where somebody else has the CPUs, takes no more than
// the workers can do, and costs the other path nothing. Nor does it where only the surging path's downstream stands still.
func TestSurgeHeldUp(t *testing.T) {
	for _, c := range []struct {
		still, every int64
		least        float64 // of what the shared pool serves in time
	}{{30 * ms, 200 * ms, 0.99}, {100 * ms, 500 * ms, 0.95}} {
		for _, s := range Scales[1:3] {
			t.Run(fmt.Sprintf("%s/%d of %d ms", s.Name, c.still/ms, c.every/ms), func(t *testing.T) {
				t.Parallel()
				var shared, fence, tail, alone []float64
				for seed := uint64(1); seed <= seeds; seed++ {
					w := s.World("surge", 1, seed)
					w.holdUp(c.still, c.every)
					rs := w.Run(NewFence(s.Workers, s.Paths, s.SLO, core.Parts{}))
					fence = append(fence, float64(Measure(rs, 1, Onset, Over, w.SLO).Good))
					shared = append(shared, float64(Measure(w.Run(NewShared(s.Workers, false)), 1, Onset, Over, w.SLO).Good))
					tail = append(tail, s.tail(w, rs))
					w.Downs[0].Speed = nil
					alone = append(alone, s.tail(w, w.Run(NewFence(s.Workers, s.Paths, s.SLO, core.Parts{}))))
				}
				got := median(fence) / median(shared)
				t.Logf("served in time over the shared pool's %.3f; the other path's p99 over that alone %.2f, where its downstream goes on %.2f", got, median(tail), median(alone))
				if got < c.least || median(tail) > 1.2 || median(alone) > 1.2 {
					t.Errorf("it must be %.2f and more, the other path's p99 at most 1.2 of that alone", c.least)
				}
			})
		}
	}
}

// tail is the p99 of path 0 over what it is with that path alone.
func (s Scale) tail(w World, results []Result) float64 {
	alone := w.Only(0).Run(NewShared(s.Workers, false))
	return float64(Measure(results, 0, Onset, Over, w.SLO).P99) / float64(Measure(alone, 0, Onset, Over, w.SLO).P99)
}

// Equal seeds give equal results.
func TestDeterminism(t *testing.T) {
	s := Scales[0]
	one := s.World("slow 10", 1, 7).Run(NewFence(s.Workers, s.Paths, s.SLO, core.Parts{}))
	two := s.World("slow 10", 1, 7).Run(NewFence(s.Workers, s.Paths, s.SLO, core.Parts{}))
	if !slices.Equal(one, two) {
		t.Error("two runs with one seed differ")
	}
}

// With -args -all: the factorial of arms, scales, disturbances and traces, as a table; -run takes a part of it.
func TestTable(t *testing.T) {
	if !*all {
		return
	}
	for _, s := range Scales {
		for _, shape := range []int{1, 4} {
			row := func(what string, build func(seed uint64) World) {
				t.Run(s.Name+"/"+shapes[shape]+"/"+what, func(*testing.T) {
					at := s.setting(build)
					for _, a := range s.arms() {
						f := at.run(a.new)
						fmt.Printf("| %s | %s | %s | %s | %.3f | %.2f | %.0f | %.2f | %.0f | %.0f |\n", s.Name, shapes[shape], what, a.name, f.innocent, f.tail, f.back, f.slowed, f.total, f.lost)
					}
				})
			}
			for _, d := range Disturbances {
				row(d, func(seed uint64) World { return s.World(d, shape, seed) })
			}
			for _, trace := range TraceNames() {
				row(trace, func(seed uint64) World { return s.Traced(trace, shape, seed) })
			}
		}
	}
}
