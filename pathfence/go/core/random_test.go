package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"temper.dev/temper/pathfence/go/core"
)

// weather is a scenario in which everything happens now and then, from a seed: downstreams that get slow, stand still and
// recover, requests that fail or are cancelled, reloads, the fence off and on, silences, rates that change. Several paths use
// several downstreams each, some between them, one after the other.
type weather struct {
	*script
	r       *rand.Rand
	keys    []string
	edges   map[string][]string
	rate    map[string]float64   // of each key, a second
	next    map[string]core.Time // its next arrival
	slow    map[string]float64   // so many times as long a downstream takes
	busy    map[string]core.Time // until when it is
	key     map[int64]string
	running []flight // in the order in which they were granted
	failing string   // a key whose requests fail
}

type flight struct {
	id   int64
	ends core.Time
}

var (
	weatherClasses     = []string{"a", "b", "c", "d", "e"}
	weatherDownstreams = []string{"store", "cache", "db", "auth", "Zed", "_x"}
)

func random(name string, seed uint64) core.Vector {
	w := &weather{r: rand.New(rand.NewPCG(seed, 7)), keys: append([]string{"x", "y", "z"}, weatherClasses...),
		edges: map[string][]string{}, rate: map[string]float64{}, next: map[string]core.Time{},
		slow: map[string]float64{}, busy: map[string]core.Time{}, key: map[int64]string{}}
	w.script = newScript(name, "everything now and then, at random: stalls, failures, reloads, off and on, silences, and downstreams that several paths use", w.config())
	for _, k := range w.keys {
		for range 1 + w.r.IntN(4) {
			w.edges[k] = append(w.edges[k], w.downstream())
		}
		if w.r.IntN(6) == 0 { // more than a class may have
			for i := range 9 {
				w.edges[k] = append(w.edges[k], fmt.Sprint("many", i))
			}
		}
	}
	w.rates(5, 60)
	for w.now < 6000*ms {
		w.step()
	}
	return w.state()
}

func (w *weather) config() core.Config {
	c := core.Config{Workers: 4 + w.r.Int64N(20), Target: (50 + w.r.Int64N(150)) * ms, Buckets: 2}
	for _, n := range weatherClasses {
		if w.r.IntN(8) == 0 {
			continue
		}
		cc := core.ClassConfig{Name: n, Keys: []string{n}}
		if w.r.IntN(2) == 0 {
			cc.Target = (30 + w.r.Int64N(150)) * ms
		}
		c.Classes = append(c.Classes, cc)
	}
	switch w.r.IntN(8) {
	case 0:
		c.Without.NoLearn = true
	case 1:
		c.Without.NoExcite = true
	case 2:
		c.Without.NoPanic = true
	}
	return c
}

func (w *weather) downstream() string { return weatherDownstreams[w.r.IntN(len(weatherDownstreams))] }

func (w *weather) rates(least, more float64) {
	for _, k := range w.keys {
		w.rate[k] = least + w.r.Float64()*more
	}
}

// step does what comes next: a tick, an arrival or an end.
func (w *weather) step() {
	at, do := (w.now/(25*ms)+1)*25*ms, w.tick
	for _, k := range w.keys {
		if w.next[k] == 0 {
			w.next[k] = w.now + core.Time(w.r.ExpFloat64()/w.rate[k]*1e9)
		}
		if w.next[k] < at {
			at, do = w.next[k], func() { w.come(k) }
		}
	}
	for _, f := range w.running {
		if f.ends < at {
			at, do = f.ends, func() { w.end(f.id) }
		}
	}
	w.now = max(at, w.now)
	do()
}

func (w *weather) come(key string) {
	w.next[key] = 0
	w.id++
	w.key[w.id] = key
	step := core.Step{At: w.now, Do: "arrive", ID: w.id, Key: key}
	if w.r.IntN(5) == 0 {
		step.Deadline = w.now + (10+w.r.Int64N(200))*ms
	}
	if w.r.IntN(200) == 0 {
		step.Depth = 1
	}
	w.run(w.play(step))
}

func (w *weather) end(id int64) {
	w.running = slices.DeleteFunc(w.running, func(f flight) bool { return f.id == id })
	outcome := core.Outcome("")
	if w.key[id] == w.failing {
		outcome = core.Fail
	} else if w.r.IntN(15) == 0 {
		outcome = core.Cancel
	}
	w.run(w.play(core.Step{At: w.now, Do: "done", ID: id, Outcome: outcome}))
}

// run lets requests that were granted a worker go to their downstreams, of which most tell.
func (w *weather) run(events []core.Event) {
	for _, e := range events {
		if e.Do != "grant" {
			continue
		}
		ends, tells := w.now+ms, w.r.IntN(10) > 0
		w.running = append(w.running, flight{id: e.ID})
		mine := len(w.running) - 1
		for _, edge := range w.edges[w.key[e.ID]] {
			if slices.Contains(weatherDownstreams, edge) {
				ends = max(ends, w.busy[edge]) + core.Time(float64(ms)*(1+w.r.Float64()*3)*max(1, w.slow[edge]))
				w.busy[edge] = ends
			}
		}
		w.running[mine].ends = ends
		for _, edge := range w.edges[w.key[e.ID]] {
			if tells && w.r.IntN(4) > 0 {
				w.run(w.play(core.Step{At: w.now, Do: "edge", ID: e.ID, Edge: edge}))
			}
		}
	}
}

func (w *weather) tick() {
	if w.r.IntN(150) == 0 {
		w.now += core.Time(w.r.Int64N(300)) * ms
	}
	w.run(w.play(core.Step{At: w.now, Do: "tick"}))
	switch w.r.IntN(60) {
	case 0, 1:
		w.slow[w.downstream()] = 1 + w.r.Float64()*14
	case 2, 3:
		w.slow[w.downstream()] = 1
	case 4:
		w.busy[w.downstream()] = w.now + core.Time(w.r.Int64N(400))*ms
	case 5:
		c := w.config()
		w.run(w.play(core.Step{At: w.now, Do: "reload", Config: &c}))
	case 6:
		w.run(w.play(core.Step{At: w.now, Do: "off"}))
	case 7, 8, 9:
		w.run(w.play(core.Step{At: w.now, Do: "on"}))
	case 10:
		w.failing = w.keys[w.r.IntN(len(w.keys))]
	case 11, 12:
		w.failing = ""
	case 13, 14, 15:
		w.play(core.Step{At: w.now, Do: "state"})
	case 16:
		w.rates(5, 60)
	case 17:
		w.rates(1, 5)
	}
}
