package sim

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// Scale is the size of a service and of what it calls. Path 0 has the disturbed downstream; all others are alike.
type Scale struct {
	Name    string
	Workers int
	Paths   int
	SLO     int64
	Servers int     // of path 0's downstream
	Service int64   // of path 0's downstream
	Rate    float64 // of path 0
	Other   int64   // the service time below every other path; those downstreams are wide
	Others  float64 // rate of each of them
	Surge   float64 // rate of path 1 in a surge, while path 0 has a tenth of its rate
}

// Scales are the sizes that the bars are checked at.
var Scales = []Scale{
	{"4 workers, 2 paths", 4, 2, 250 * ms, 2, 10 * ms, 60, 4 * ms, 50, 400},
	{"16 workers, 2 paths", 16, 2, 250 * ms, 8, 10 * ms, 250, 4 * ms, 250, 2500},
	{"16 workers, 2 alike", 16, 2, 250 * ms, 8, 10 * ms, 250, 10 * ms, 150, 1000},
	{"64 workers, 2 paths", 64, 2, 250 * ms, 16, 10 * ms, 800, 4 * ms, 2000, 11000},
	{"64 workers, 24 paths", 64, 24, 250 * ms, 8, 10 * ms, 200, 10 * ms, 50, 3000},
	{"16 workers, 6 paths, fast", 16, 6, 100 * ms, 4, 1 * ms, 1500, 1 * ms, 500, 8000},
	{"32 workers, 4 paths, slow", 32, 4, 2 * second, 12, 50 * ms, 100, 50 * ms, 40, 300},
	{"8 workers, 12 paths", 8, 12, 250 * ms, 2, 5 * ms, 100, 5 * ms, 20, 800},
}

// The disturbance lasts from Onset to Over; Start leaves out the first seconds, in which the fence learns.
const (
	Start = 5 * second
	Onset = 10 * second
	Over  = 20 * second
	End   = 25 * second
)

// Disturbances are what happens to path 0's downstream, or to the arrivals.
var Disturbances = []string{"none", "slow 2", "slow 5", "slow 10", "slow 40", "freeze", "hang", "burst", "surge", "surge, held up", "one downstream", "pause"}

// World builds a run.
func (s Scale) World(disturbance string, shape int, seed uint64) World {
	w := World{Workers: s.Workers, SLO: s.SLO, End: End, Seed: seed}
	w.Downs = append(w.Downs, Downstream{Servers: s.Servers, Service: s.Service, Shape: shape})
	w.Paths = append(w.Paths, Path{Rate: []Step{{0, s.Rate}}})
	for p := 1; p < s.Paths; p++ {
		w.Downs = append(w.Downs, Downstream{Servers: 4 * s.Workers, Service: s.Other, Shape: shape})
		w.Paths = append(w.Paths, Path{Rate: []Step{{0, s.Others}}, Down: p})
	}
	slow := func(by float64) { w.Downs[0].Speed = []Step{{Onset, 1 / by}, {Over, 1}} }
	switch disturbance {
	case "slow 2":
		slow(2)
	case "slow 5":
		slow(5)
	case "slow 10":
		slow(10)
	case "slow 40":
		slow(40)
	case "freeze":
		for t := Onset; t < Over; t += 500 * ms {
			w.Downs[0].Speed = append(w.Downs[0].Speed, Step{t, 0}, Step{t + 400*ms, 1})
		}
	case "hang":
		w.Downs[0].Speed = []Step{{Onset, 0}, {Over, 1}}
	case "burst":
		w.Paths[0].Rate = []Step{{0, s.Rate}, {Onset, 8 * s.Rate}, {Onset + second, s.Rate}}
	case "surge":
		s.surge(&w)
	case "surge, held up":
		s.surge(&w)
		w.holdUp(30*ms, 200*ms)
	case "one downstream":
		w.Paths[1].Down = 0
		slow(10)
	case "pause":
		w.Pauses = []Step{{Onset, 0.3}, {Onset + 4*second, 0.3}}
	}
	return w
}

func (s Scale) surge(w *World) {
	w.Paths[0].Rate = []Step{{0, s.Rate}, {Onset, s.Rate / 10}, {Over, s.Rate}}
	w.Paths[1].Rate = []Step{{0, s.Others}, {Onset, s.Surge}, {Over, s.Others}}
}

// holdUp lets all downstreams stand still at once, for so long, once in so long on average: as where others take the CPUs.
func (w World) holdUp(still, every int64) {
	src := rand.New(rand.NewPCG(w.Seed, 0))
	for t := Onset; ; {
		t += int64(src.ExpFloat64() * float64(every-still))
		if t+still >= Over {
			return
		}
		for i := range w.Downs {
			w.Downs[i].Speed = append(w.Downs[i].Speed, Step{t, 0}, Step{t + still, 1})
		}
		t += still
	}
}

// Only leaves one path of a world.
func (w World) Only(path int) World {
	for p := range w.Paths {
		if p != path {
			w.Paths = append([]Path(nil), w.Paths...)
			w.Paths[p].Rate = nil
		}
	}
	return w
}

// Traces are loads shaped after the six classic traces, as factors on a rate.
var Traces = map[string]func(t float64) float64{
	"slowly varying":   func(t float64) float64 { return 0.4 + 0.6*math.Sin(math.Pi*t) },
	"quickly varying":  func(t float64) float64 { return 0.7 + 0.3*math.Sin(2*math.Pi*12*t) },
	"big spike":        func(t float64) float64 { return 0.3 + 1.7*math.Exp(-math.Pow((t-0.5)/0.04, 2)) },
	"dual phase":       func(t float64) float64 { return map[bool]float64{true: 0.4, false: 1}[t < 0.5] },
	"large variations": func(t float64) float64 { return 0.6 + 0.5*math.Sin(2*math.Pi*4*t)*math.Sin(2*math.Pi*1.5*t) },
	"steep tri phase":  func(t float64) float64 { return []float64{0.3, 1.2, 0.6}[int(min(2, t*3))] },
}

// TraceNames are the traces, sorted.
func TraceNames() []string { return slices.Sorted(maps.Keys(Traces)) }

// Traced lets every path's rate follow a trace, while path 0's downstream is slowed tenfold in the middle.
func (s Scale) Traced(trace string, shape int, seed uint64) World {
	w := s.World("slow 10", shape, seed)
	for p := range w.Paths {
		rate := w.Paths[p].Rate[0].Value
		w.Paths[p].Rate = nil
		for t := int64(0); t < End; t += 100 * ms {
			w.Paths[p].Rate = append(w.Paths[p].Rate, Step{t, rate * Traces[trace](float64(t)/float64(End))})
		}
	}
	return w
}
