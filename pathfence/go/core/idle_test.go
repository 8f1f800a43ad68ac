package core_test

import (
	"container/heap"

	"temper.dev/temper/pathfence/go/core"
)

// timed serves requests that take so long, by their key, until a time; come says which arrive at one.
func (s *script) timed(until core.Time, takes map[string]core.Time, come func(at core.Time) []string) {
	var running ends
	key := map[int64]string{}
	hear := func(events []core.Event) {
		for _, e := range events {
			if e.Do == "grant" {
				heap.Push(&running, end{s.now + takes[key[e.ID]], e.ID})
			}
		}
	}
	for ; s.now < until; s.now += ms {
		for len(running) > 0 && running[0].at <= s.now {
			hear(s.play(core.Step{At: s.now, Do: "done", ID: heap.Pop(&running).(end).id}))
		}
		if s.now%(25*ms) == 0 {
			hear(s.play(core.Step{At: s.now, Do: "tick"}))
		}
		for _, k := range come(s.now) {
			s.id++
			key[s.id] = k
			hear(s.play(core.Step{At: s.now, Do: "arrive", ID: s.id, Key: k}))
		}
	}
}

func bursts() core.Vector {
	s := newScript("bursts", "a dozen requests of a millisecond come at once: no more is kept for the next dozen than does it in a 256th of its target", core.Config{Workers: 16, Target: 1000 * ms, Classes: classes("a", "b")})
	s.timed(2500*ms, map[string]core.Time{"a": 300 * ms, "b": ms}, func(at core.Time) (keys []string) {
		if at%(20*ms) == 0 {
			keys = append(keys, "a")
		}
		if at%(100*ms) == 0 {
			for range 12 {
				keys = append(keys, "b")
			}
		}
		return keys
	})
	return s.state()
}

func kept() core.Vector {
	s := newScript("kept", "a bucket with nothing in flight leaves what a class wants, also one that is halted", core.Config{Workers: 12, Classes: []core.ClassConfig{known("a"), known("b")}})
	for range 4 { // a wants six at once
		for range 6 {
			s.arrive("a")
		}
		s.ticked(s.now + 50*ms)
		for id := s.id - 5; id <= s.id; id++ {
			s.done(id, "")
		}
		s.ticked(s.now + 50*ms)
	}
	for range 2 {
		s.after(ms).arrive("a")
	}
	for range 40 { // nothing more is heard of a, but of b
		id := s.after(10 * ms).arrive("b")
		s.after(ms).done(id, "")
	}
	for range 6 {
		s.after(ms).arrive("a")
	}
	for _, key := range []string{"p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12"} {
		s.after(ms).arrive(key)
	}
	return s.state()
}

func retargeted() core.Vector {
	config := func(target core.Time) core.Config {
		return core.Config{Workers: 12, Target: target, Classes: classes("a")}
	}
	s := newScript("retargeted", "a class that was in time has another target, which it has yet to meet: it is not cut for being late", config(100*ms))
	every := func(at core.Time) []string {
		if at%(20*ms) == 0 {
			return []string{"a"}
		}
		return nil
	}
	takes := map[string]core.Time{"a": 80 * ms}
	s.timed(1000*ms, takes, every)
	shorter := config(50 * ms)
	s.play(core.Step{At: s.now, Do: "reload", Config: &shorter})
	s.timed(3000*ms, takes, every)
	return s.state()
}

func togetherLate() core.Vector {
	s := newScript("together-late", "two paths that were in time come to be late together: one of them was a class by itself until it told of its edge", core.Config{Workers: 16, Target: 50 * ms, Classes: classes("a")})
	const inTime = 30 // rounds
	for round := range inTime + 20 {
		ids := []int64{s.arrive("a"), s.arrive("x")}
		s.play(core.Step{At: s.now, Do: "edge", ID: ids[0], Edge: "store"})
		if round > inTime+3 {
			s.play(core.Step{At: s.now, Do: "edge", ID: ids[1], Edge: "store"})
		}
		for tick := range 3 {
			s.now += 25 * ms
			s.play(core.Step{At: s.now, Do: "tick"})
			if round < inTime && tick == 0 || tick == 2 {
				for _, id := range ids {
					s.done(id, "")
				}
			}
		}
	}
	return s.state()
}
