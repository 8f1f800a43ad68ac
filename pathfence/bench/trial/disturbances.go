package trial

import (
	"slices"
	"time"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/stage"
	"temper.dev/temper/pathfence/go/core/sim"
)

// Disturbance is what happens to the slowed path's downstream, to the arrivals or to the machine, between warm-up and
// recovery.
type Disturbance struct {
	Name  string
	slow  bool   // the downstream takes ten times as long
	stall freeze // it is frozen now and then
	full  bool   // no arrivals: always as many requests under way as there are workers, without work
	// Processes beside the services that take what they can get of the machine: what each does, "spin" or "stream".
	neighbours []string
	topology   Topology
	rates      func(Scale, Timeline) (innocent, slowed rate)
}

// What neighbours do, as pathfence-bench-node calls it.
const (
	spinning  = "spin"
	streaming = "stream" // through more memory than the caches hold
)

// freeze is for how long a process stands still, of how long.
type freeze struct{ still, every time.Duration }

type rate struct {
	at   func(time.Duration) float64
	peak float64
}

func constant(perSecond float64) rate { return rate{load.Constant(perSecond), perSecond} }

func usual(s Scale, _ Timeline) (innocent, slowed rate) {
	return constant(s.Innocent.Rate), constant(s.Slowed.Rate)
}

func surge(s Scale, t Timeline) (innocent, slowed rate) {
	step := func(usual, disturbed float64) rate {
		return rate{func(at time.Duration) float64 {
			if at >= t.WarmUp && at < t.over() {
				return disturbed
			}
			return usual
		}, max(usual, disturbed)}
	}
	return step(s.Innocent.Rate, s.Surge), step(s.Slowed.Rate, s.Slowed.Rate/10)
}

// burst has eight times as much of the slowed path for a second.
func burst(s Scale, t Timeline) (innocent, slowed rate) {
	const times, lasts = 8, time.Second
	return constant(s.Innocent.Rate), rate{func(at time.Duration) float64 {
		if at >= t.WarmUp && at < t.WarmUp+lasts {
			return times * s.Slowed.Rate
		}
		return s.Slowed.Rate
	}, times * s.Slowed.Rate}
}

// traced lets both paths' rates follow a trace of the simulation over the whole run.
func traced(shape func(float64) float64) func(Scale, Timeline) (innocent, slowed rate) {
	const tallest = 2 // no trace is above it
	return func(s Scale, t Timeline) (innocent, slowed rate) {
		follow := func(usual float64) rate {
			return rate{func(at time.Duration) float64 { return usual * shape(float64(at)/float64(t.end())) }, usual * tallest}
		}
		return follow(s.Innocent.Rate), follow(s.Slowed.Rate)
	}
}

// besides are the disturbances by neighbours: so many of a kind, each of which takes a CPU if it gets one.
var besides = []Disturbance{
	beside("1 CPU neighbour", spinning, 1),
	beside("2 CPU neighbours", spinning, 2),
	beside("4 CPU neighbours", spinning, 4),
	beside("1 memory neighbour", streaming, 1),
	beside("2 memory neighbours", streaming, 2),
}

func beside(name, kind string, n int) Disturbance {
	return Disturbance{Name: name, rates: usual, neighbours: slices.Repeat([]string{kind}, n), topology: twoPaths}
}

var (
	undisturbed        = Disturbance{Name: record.None, rates: usual, topology: twoPaths}
	undisturbedNetwork = Disturbance{Name: record.Network, rates: usual, topology: cut}
	undisturbedSocial  = Disturbance{Name: record.Social, rates: usual, topology: social}
	undisturbedShop    = Disturbance{Name: record.Shop, rates: usual, topology: shop}
	undisturbedMedia   = Disturbance{Name: record.Media, rates: usual, topology: media}
)

// Disturbances are all that can be measured. The traces come with the downstream slowed tenfold.
func Disturbances() []Disturbance {
	long := freeze{400 * time.Millisecond, 500 * time.Millisecond}
	all := []Disturbance{
		undisturbed,
		{Name: record.Slow, rates: usual, slow: true, topology: twoPaths},
		{Name: record.Freeze, rates: usual, stall: long, topology: twoPaths},
		{Name: "collector's pause", rates: usual, stall: freeze{300 * time.Millisecond, 2 * time.Second}, topology: twoPaths},
		{Name: "log flush", rates: usual, stall: freeze{60 * time.Millisecond, 500 * time.Millisecond}, topology: twoPaths},
		{Name: "burst", rates: burst, topology: twoPaths},
		{Name: record.Surge, rates: surge, topology: twoPaths},
		{Name: "one downstream", rates: usual, slow: true, topology: oneDownstream},
		{Name: record.Saturation, rates: usual, full: true, topology: twoPaths},
		undisturbedNetwork,
		{Name: record.NetworkSlow, rates: usual, slow: true, topology: cut},
		{Name: record.NetworkFreeze, rates: usual, stall: long, topology: cut},
		undisturbedSocial,
		{Name: record.SocialSlow, rates: usual, slow: true, topology: social},
		{Name: record.SocialFreeze, rates: usual, stall: long, topology: social},
		undisturbedShop,
		{Name: record.ShopSlow, rates: usual, slow: true, topology: shop},
		{Name: record.ShopFreeze, rates: usual, stall: long, topology: shop},
		undisturbedMedia,
		{Name: record.MediaSlow, rates: usual, slow: true, topology: media},
		{Name: record.MediaFreeze, rates: usual, stall: long, topology: media},
	}
	all = append(all, besides...)
	for _, name := range sim.TraceNames() {
		all = append(all, Disturbance{Name: name, rates: traced(sim.Traces[name]), slow: true, topology: twoPaths})
	}
	return all
}

// measures says whether an arm makes sense under it.
func (d Disturbance) measures(a Arm) bool {
	if d.full {
		return a.Name == record.Shared || a.Name == record.Fence
	}
	return !slices.Contains(d.topology.Without, a.Name)
}

// flows are what is offered of some groups, a flow for each path.
func (d Disturbance) flows(s Scale, t Timeline, groups ...string) (list []load.Flow) {
	innocent, slowed := d.rates(s, t)
	for _, route := range d.topology.Routes {
		if !slices.Contains(groups, route.Group) {
			continue
		}
		of, path := slowed, s.Slowed
		if route.Group == record.Innocent {
			of, path = innocent, s.Innocent
		}
		part := d.topology.part(route)
		f := load.Flow{Path: route.Path, Rate: func(at time.Duration) float64 { return part * of.at(at) }, Peak: part * of.peak, Work: path.Work}
		if d.full {
			f.Work = 0
		}
		list = append(list, f)
	}
	return list
}

// action is something that is done at a time of the run.
type action struct {
	at time.Duration
	do func() error
}

// actions are what happens to the downstream, and what neighbours do.
func (d Disturbance) actions(t Timeline, downstream *stage.Process, beside []*stage.Process) (list []action) {
	if d.slow {
		list = append(list,
			action{t.WarmUp, func() error { return downstream.Say("slow 10") }},
			action{t.over(), func() error { return downstream.Say("slow 1") }})
	}
	if d.stall.every > 0 {
		for at := t.WarmUp; at < t.over(); at += d.stall.every {
			list = append(list, action{at, downstream.Freeze}, action{at + d.stall.still, downstream.Thaw})
		}
	}
	for _, p := range beside {
		list = append(list, action{t.WarmUp, func() error { return p.Say("go") }}, action{t.over(), p.Freeze})
	}
	return list
}
