package trial

import (
	"time"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/stage"
	"temper.dev/temper/pathfence/spec/model/sim"
)

// Disturbance is what happens to the slowed path's downstream, or to the arrivals, between warm-up and recovery.
type Disturbance struct {
	Name  string
	slow  bool   // the downstream takes ten times as long
	stall freeze // it is frozen now and then
	one   bool   // both paths call it
	// The service is the shared one of the social network's cut: others stand before it.
	network bool
	full    bool // no arrivals: always as many requests under way as there are workers, without work
	rates   func(Scale, Timeline) (innocent, slowed rate)
}

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

var (
	undisturbed        = Disturbance{Name: record.None, rates: usual}
	undisturbedNetwork = Disturbance{Name: record.Network, rates: usual, network: true}
)

// Disturbances are all that can be measured. The traces come with the downstream slowed tenfold.
func Disturbances() []Disturbance {
	long := freeze{400 * time.Millisecond, 500 * time.Millisecond}
	all := []Disturbance{
		undisturbed,
		{Name: record.Slow, rates: usual, slow: true},
		{Name: record.Freeze, rates: usual, stall: long},
		{Name: "collector's pause", rates: usual, stall: freeze{300 * time.Millisecond, 2 * time.Second}},
		{Name: "log flush", rates: usual, stall: freeze{60 * time.Millisecond, 500 * time.Millisecond}},
		{Name: "burst", rates: burst},
		{Name: record.Surge, rates: surge},
		{Name: "one downstream", rates: usual, slow: true, one: true},
		{Name: record.Saturation, rates: usual, full: true},
		undisturbedNetwork,
		{Name: record.NetworkSlow, rates: usual, slow: true, network: true},
		{Name: record.NetworkFreeze, rates: usual, stall: long, network: true},
	}
	for _, name := range sim.TraceNames() {
		all = append(all, Disturbance{Name: name, rates: traced(sim.Traces[name]), slow: true})
	}
	return all
}

// flows are what is offered.
func (d Disturbance) flows(s Scale, t Timeline) map[string]load.Flow {
	innocent, slowed := d.rates(s, t)
	flow := func(path string, r rate, p Path) load.Flow {
		f := load.Flow{Path: path, Rate: r.at, Peak: r.peak, Work: p.Work}
		if d.full {
			f.Work = 0
		}
		return f
	}
	return map[string]load.Flow{
		record.Innocent: flow(record.Innocent, innocent, s.Innocent),
		record.Slowed:   flow(record.Slowed, slowed, s.Slowed),
	}
}

// action is something that is done at a time of the run.
type action struct {
	at time.Duration
	do func() error
}

// actions are what happens to the downstream.
func (d Disturbance) actions(t Timeline, downstream *stage.Process) (list []action) {
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
	return list
}
