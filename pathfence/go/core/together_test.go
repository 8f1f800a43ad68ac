package core_test

import (
	"temper.dev/temper/pathfence/go/core"
	"temper.dev/temper/pathfence/go/core/sim"
)

// teller is a recorder that also says which edges a request uses once it has a worker; and some ticks are followed by
// steps of their own.
type teller struct {
	recorder
	edges [][]string // of each path
	path  map[int64]int
	after map[core.Time]core.Step
}

func (t teller) Arrive(now, id int64, path int, deadline int64) []sim.Decision {
	t.path[id] = path
	return t.tell(now, t.recorder.Arrive(now, id, path, deadline))
}

func (t teller) Done(now, id int64) []sim.Decision { return t.tell(now, t.recorder.Done(now, id)) }

func (t teller) Tick(now int64) []sim.Decision {
	out := t.tell(now, t.recorder.Tick(now))
	if step, ok := t.after[now]; ok {
		step.At = now
		out = append(out, t.tell(now, decisions(t.s.play(step)))...)
	}
	return out
}

func (t teller) tell(now int64, ds []sim.Decision) []sim.Decision {
	for _, d := range ds {
		if d.Shed {
			continue
		}
		for _, edge := range t.edges[t.path[d.ID]] {
			t.s.play(core.Step{At: now, Do: "edge", ID: d.ID, Edge: edge})
		}
	}
	return ds
}

// Seven paths of low rate, two of them with a class that is learned; five use a store with three threads, two another.
func togetherWorld() sim.World {
	w := sim.World{Workers: 16, SLO: 100 * ms, End: 6000 * ms, Seed: 1,
		Downs: []sim.Downstream{{Servers: 3, Service: 4 * ms, Shape: 4}, {Servers: 64, Service: 4 * ms, Shape: 1}}}
	for path := range 7 {
		w.Paths = append(w.Paths, sim.Path{Rate: []sim.Step{{Value: 40}, {At: 1500 * ms, Value: 24}}, Down: path / 5})
	}
	w.Downs[0].Speed = []sim.Step{{At: 1500 * ms, Value: 0.1}, {At: 4000 * ms, Value: 1}}
	return w
}

func together() core.Vector {
	cfg := core.Config{Workers: 16, Target: 100 * ms, Classes: classes("p0", "p1", "p2", "p5")}
	s := newScript("together", "paths of low rate that use a slow store between them are late together: the store's edge gets a limit, which ends with its cause", cfg)
	more := cfg
	more.Workers = 20
	after := map[core.Time]core.Step{
		3000 * ms: {Do: "state"},
		3200 * ms: {Do: "reload", Config: &more},
		3400 * ms: {Do: "off"},
		3500 * ms: {Do: "on"},
	}
	for at := 4600 * ms; at < 5800*ms; at += 100 * ms { // who is acquitted when
		after[at] = core.Step{Do: "state"}
	}
	togetherWorld().Run(teller{recorder{s}, [][]string{{"store"}, {"cache", "store"}, {"store", "other"}, {"store"}, {"cache", "store"}, {"other"}, {"other"}}, map[int64]int{}, after})
	return s.state()
}

// The same while the service stands still now and then, and has fewer workers for a while than the group's limit.
func shaken() core.Vector {
	cfg := core.Config{Workers: 16, Target: 100 * ms, Classes: classes("p0", "p1", "p2", "p3", "p4")}
	s := newScript("shaken", "a group's sample ends with a window in which the service stood still; its limit is never above the workers", cfg)
	fewer := cfg
	fewer.Workers = 2
	w := togetherWorld()
	w.End = 3800 * ms
	for at := 2150 * ms; at < w.End; at += 300 * ms {
		w.Pauses = append(w.Pauses, sim.Step{At: at, Value: 0.06})
	}
	store := []string{"store"}
	w.Run(teller{recorder{s}, [][]string{store, store, store, store, store, {"other"}, {"other"}}, map[int64]int{}, map[core.Time]core.Step{
		2100 * ms: {Do: "reload", Config: &fewer},
		2600 * ms: {Do: "reload", Config: &cfg},
	}})
	return s.state()
}

// Every 75 ms a request of each class, and of those that came 300 ms ago the end. Rates are too low for classes to learn.
func suspects() core.Vector {
	cfg := core.Config{Workers: 40, Classes: classes("a", "b", "c", "d", "e"), Without: core.Parts{NoPanic: true}}
	for i, target := range []core.Time{290, 60, 100, 100, 100} {
		cfg.Classes[i].Target = target * ms
	}
	s := newScript("suspects", "which of several edges gets the group, and its target; a class that tells of an edge late; one that is quick and leaves; nobody becomes a suspect while the fence is off", cfg)
	edges := map[string][]string{"a": {"y", "x"}, "b": {"x", "y"}, "c": {"z"}, "e": {"x"}}
	type one struct {
		id int64
		at core.Time
	}
	var running []one
	step := func(keys ...string) {
		s.ticked(s.now + 75*ms)
		for len(running) > 0 && running[0].at <= s.now-300*ms {
			s.done(running[0].id, "")
			running = running[1:]
		}
		for _, key := range keys {
			s.arrive(key)
			if !s.granted() {
				continue
			}
			running = append(running, one{s.id, s.now})
			for _, edge := range edges[key] {
				s.play(core.Step{At: s.now, Do: "edge", ID: s.id, Edge: edge})
			}
		}
	}
	quick := func() {
		if id := s.after(5 * ms).arrive("e"); s.granted() {
			s.after(5*ms).done(id, "")
		}
	}
	for range 4 {
		step("a", "b", "c", "e")
	}
	for i := range 16 {
		step("a", "b", "c")
		if i >= 4 { // those that take long have ended
			quick()
		}
	}
	s.state()
	edges["c"] = []string{"x"}
	for range 10 {
		quick()
		step("a", "b")
	}
	s.state()
	for range 20 {
		step("a", "b", "c")
	}
	s.state()
	edges["d"] = []string{"x"}
	s.play(core.Step{At: s.now, Do: "off"})
	for range 6 {
		step("d")
	}
	s.play(core.Step{At: s.now, Do: "on"})
	s.state()
	step("d") // it was late before, and is again
	return s.state()
}
