package core_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"

	"temper.dev/temper/pathfence/go/core"
)

type end struct {
	at core.Time
	id int64
}

type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// A service of 16 workers that nothing is wrong with: requests of 60 ms, some of which a busy machine makes longer, and a
// target of 250 ms; or whose requests take longer than the target. From a cold start on, nothing is refused, whatever comes
// in late.
func TestAHealthyServiceRefusesNothing(t *testing.T) {
	const seed = 3
	for _, c := range []struct {
		name  string
		rate  float64
		noise float64 // the part of requests that take 100 ms longer, by the mean
		burst int     // come at once each second
		takes core.Time
		warm  core.Time // until when each request takes ten times as long
		other bool      // bursts are of another path, whose requests take 1 ms; and the target is 1 s
	}{
		{"steady", 100, 0, 0, 60 * ms, 0, false},
		{"half of what it can do", 150, 0, 0, 60 * ms, 0, false},
		{"a busy machine", 100, 0.3, 0, 60 * ms, 0, false},
		{"a very busy machine", 80, 0.5, 0, 60 * ms, 0, false},
		{"bursts that drain", 20, 0, 60, 60 * ms, 0, false},
		{"longer than the target", 3, 0, 0, 2000 * ms, 0, false},
		{"slow at the start", 15, 0, 0, 60 * ms, 3000 * ms, false},
		{"beside bursts of a quick path", 200, 0, 12, 60 * ms, 0, true},
		{"bursts of thousands, which are served in half of their time", 20, 0, 6000, 60 * ms, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, seed))
			target := 250 * ms
			if c.other {
				target *= 4
			}
			f, err := core.New(core.Config{Workers: 16, Target: target, Classes: classes("a", "b")}, 0)
			if err != nil {
				t.Fatal(err)
			}
			var now, next, tick, burst core.Time
			var running ends
			id := int64(0)
			other := map[int64]bool{}
			hear := func(events []core.Event) {
				for _, e := range events {
					switch e.Do {
					case "grant":
						d := c.takes
						if now < c.warm {
							d *= 10
						}
						if other[e.ID] {
							d = ms
						}
						if r.Float64() < c.noise {
							d += core.Time(r.ExpFloat64() * 100 * float64(ms))
						}
						heap.Push(&running, end{now + d, e.ID})
					case "shed":
						t.Fatalf("seed %d: at %d ms, request %d of %d was refused: %s; want none", seed, now/ms, e.ID, id, e.Reason)
					}
				}
			}
			come := func(key string) {
				id++
				other[id] = key == "b"
				hear(f.Arrive(now, core.Request{ID: id, Key: key}))
			}
			for now < 30_000*ms {
				switch now = min(next, tick, burst); {
				case len(running) > 0 && running[0].at <= now:
					now = running[0].at
					hear(f.Done(now, heap.Pop(&running).(end).id, core.OK))
				case now == tick:
					tick += 25 * ms
					hear(f.Tick(now))
				case now == burst:
					burst += 1000 * ms
					for range c.burst {
						if c.other {
							come("b")
						} else {
							come("a")
						}
					}
				default:
					next = now + core.Time(r.ExpFloat64()/c.rate*1e9)
					come("a")
				}
			}
		})
	}
}
