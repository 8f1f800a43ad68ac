package core_test

import (
	"fmt"

	"temper.dev/temper/pathfence/go/core"
	"temper.dev/temper/pathfence/go/core/sim"
)

// recorder is an arm that writes down what it is asked and what it answers.
type recorder struct{ s *script }

func (r recorder) Arrive(now, id int64, path int, deadline int64) []sim.Decision {
	return decisions(r.s.play(core.Step{At: now, Do: "arrive", ID: id, Key: fmt.Sprint("p", path), Deadline: deadline}))
}

func (r recorder) Done(now, id int64) []sim.Decision {
	return decisions(r.s.play(core.Step{At: now, Do: "done", ID: id}))
}

func (r recorder) Tick(now int64) []sim.Decision {
	r.s.now = now
	return decisions(r.s.play(core.Step{At: now, Do: "tick"}))
}

func decisions(events []core.Event) (out []sim.Decision) {
	for _, e := range events {
		if e.Do == "grant" || e.Do == "shed" {
			out = append(out, sim.Decision{ID: e.ID, Shed: e.Do == "shed"})
		}
	}
	return out
}

func played(name, about string, w sim.World, without core.Parts) core.Vector {
	s := newScript(name, about, core.Config{Workers: int64(w.Workers), Target: w.SLO, Classes: classes("p0", "p1"), Without: without})
	w.Run(recorder{s})
	return s.state()
}

func world(workers, servers int, rate0, rate1 float64) sim.World {
	return sim.World{Workers: workers, SLO: 100 * ms, End: 3500 * ms, Seed: 1,
		Paths: []sim.Path{{Rate: []sim.Step{{Value: rate0}}}, {Rate: []sim.Step{{Value: rate1}}, Down: 1}},
		Downs: []sim.Downstream{{Servers: servers, Service: 4 * ms, Shape: 4}, {Servers: 64, Service: 4 * ms, Shape: 1}}}
}

func slowWorld(seed uint64) sim.World {
	w := world(12, 3, 300, 60)
	w.Seed = seed
	w.Downs[0].Speed = []sim.Step{{At: 700 * ms, Value: 0.1}, {At: 2800 * ms, Value: 1}}
	return w
}

func freezeWorld() sim.World {
	w := world(12, 3, 300, 60)
	for t := 600 * ms; t < 3000*ms; t += 500 * ms {
		w.Downs[0].Speed = append(w.Downs[0].Speed, sim.Step{At: t, Value: 0}, sim.Step{At: t + 400*ms, Value: 1})
	}
	return w
}

func surgeWorld() sim.World {
	w := world(6, 3, 60, 100)
	w.End = 2500 * ms
	w.Paths[1].Rate = []sim.Step{{Value: 100}, {At: 1000 * ms, Value: 900}, {At: 1800 * ms, Value: 100}}
	return w
}

func heldUpWorld() sim.World {
	w := surgeWorld()
	for t := 1050 * ms; t < 1800*ms; t += 150 * ms {
		for d := range w.Downs {
			w.Downs[d].Speed = append(w.Downs[d].Speed, sim.Step{At: t, Value: 0}, sim.Step{At: t + 30*ms, Value: 1})
		}
	}
	return w
}

func longWorld() sim.World {
	w := world(24, 64, 400, 30)
	w.End = 2000 * ms
	w.Downs[0].Service = 90 * ms
	return w
}

func well(core.Time) core.Outcome { return "" }

// curve drives one class against a downstream whose rate depends on what is in flight.
func curve(name, about string, cfg core.Config, until core.Time, every, takes func(n int64) core.Time, outcome func(now core.Time) core.Outcome) core.Vector {
	s := newScript(name, about, cfg)
	running := []int64{}
	next := core.Time(0)
	note := func(events []core.Event) {
		for _, e := range events {
			if e.Do == "grant" {
				running = append(running, e.ID)
				if len(running) == 1 {
					next = s.now + takes(1)
				}
			}
		}
	}
	arrival := core.Time(0)
	for tick := core.Time(0); s.now < until; {
		switch {
		case tick <= arrival && (len(running) == 0 || tick <= next):
			s.now = tick
			tick += 25 * ms
			note(s.play(core.Step{At: s.now, Do: "tick"}))
		case len(running) == 0 || arrival <= next:
			s.now = arrival
			s.id++
			arrival += every(s.id)
			note(s.play(core.Step{At: s.now, Do: "arrive", ID: s.id, Key: "a"}))
		default:
			s.now = next
			id := running[0]
			running = running[1:]
			if len(running) > 0 {
				next += takes(int64(len(running)))
			}
			note(s.play(core.Step{At: s.now, Do: "done", ID: id, Outcome: outcome(s.now)}))
		}
	}
	return s.state()
}

func learning() core.Vector {
	return curve("knee", "a downstream with a knee at 4, asked for more than it can do: the limit finds it", core.Config{Workers: 24, Target: 100 * ms, Classes: []core.ClassConfig{{Name: "a", Keys: []string{"a"}, Limit: 9}}}, 6000*ms,
		func(int64) core.Time { return 4 * ms },
		func(n int64) core.Time { return 20 * ms / min(n, 4) }, well)
}

func thrashing() core.Vector {
	return curve("thrash", "a downstream that gets less done the more is in flight", core.Config{Workers: 24, Target: 2000 * ms, Classes: []core.ClassConfig{{Name: "a", Keys: []string{"a"}, Limit: 6}}}, 5000*ms,
		func(int64) core.Time { return 4 * ms },
		func(n int64) core.Time { return (5 + n*n/8) * ms }, well)
}

func longer() core.Vector {
	return curve("longer", "requests that take longer than their target from the start on: it is the target that is too short, and no limit falls", core.Config{Workers: 8, Target: 100 * ms, Classes: classes("a")}, 9000*ms,
		func(int64) core.Time { return 150 * ms },
		func(n int64) core.Time { return 300 * ms / n }, well)
}

func failing() core.Vector {
	return curve("failing", "a downstream that comes to fail slowly: failures are no goodput, and the limit falls", core.Config{Workers: 24, Target: 100 * ms, Classes: classes("a")}, 1500*ms,
		func(int64) core.Time { return 4 * ms },
		func(n int64) core.Time { return 6 * ms }, func(now core.Time) core.Outcome {
			if now < 300*ms {
				return core.OK
			}
			return core.Fail
		})
}

// In pools of a few workers the percentile moves by its least step. Here it has grown by a part of itself with each of
// many arrivals, so that how much is lent tells which part.
func wide() core.Vector {
	s := newScript("wide", "200 workers: what one class wanted at once a moment ago is kept for it, as a percentile, and the rest is lent", core.Config{Workers: 200, Classes: classes("a", "b")})
	const step, busy = ms / 10, 60
	b := []int64{}
	for range busy {
		b = append(b, s.after(step).arrive("b"))
	}
	for range busy {
		s.after(step).done(b[0], "")
		b = append(b[1:], s.arrive("b"))
	}
	for _, id := range b {
		s.done(id, "")
	}
	for range 200 {
		s.arrive("a")
	}
	return s.state()
}
