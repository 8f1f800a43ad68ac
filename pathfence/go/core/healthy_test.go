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
// target of 250 ms. From a cold start on, nothing is refused, whatever comes in late.
func TestAHealthyServiceRefusesNothing(t *testing.T) {
	const seed = 3
	for _, c := range []struct {
		name  string
		rate  float64
		noise float64 // the part of requests that take 100 ms longer, by the mean
		burst int     // come at once each second
	}{
		{"steady", 100, 0, 0},
		{"half of what it can do", 150, 0, 0},
		{"a busy machine", 100, 0.3, 0},
		{"a very busy machine", 80, 0.5, 0},
		{"bursts that drain", 20, 0, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, seed))
			f, err := core.New(core.Config{Workers: 16, Classes: classes("a")}, 0)
			if err != nil {
				t.Fatal(err)
			}
			var now, next, tick, burst core.Time
			var running ends
			id := int64(0)
			hear := func(events []core.Event) {
				for _, e := range events {
					switch e.Do {
					case "grant":
						d := 60 * ms
						if r.Float64() < c.noise {
							d += core.Time(r.ExpFloat64() * 100 * float64(ms))
						}
						heap.Push(&running, end{now + d, e.ID})
					case "shed":
						t.Fatalf("seed %d: at %d ms, request %d of %d was refused: %s; want none", seed, now/ms, e.ID, id, e.Reason)
					}
				}
			}
			come := func() {
				id++
				hear(f.Arrive(now, core.Request{ID: id, Key: "a"}))
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
						come()
					}
				default:
					next = now + core.Time(r.ExpFloat64()/c.rate*1e9)
					come()
				}
			}
		})
	}
}
