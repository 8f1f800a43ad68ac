package core_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"

	"temper.dev/temper/pathfence/go/core"
)

// traffic is a path that is asked for at random moments.
type traffic struct {
	key   string
	edge  string  // that its requests use; empty: none
	rate  float64 // a second
	takes core.Time
	hangs core.Time // from when on nothing comes back; 0: never

	sent, served int64 // since count
}

// play has a fence serve paths until a time, and counts what comes from count on.
func play(t *testing.T, cfg core.Config, seed uint64, paths []*traffic, count, until core.Time) *core.Fence {
	t.Helper()
	f, err := core.New(cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	gap := func(p *traffic) core.Time { return 1 + core.Time(r.ExpFloat64()/p.rate*1e9) }
	next := make([]core.Time, len(paths))
	for i, p := range paths {
		next[i] = gap(p)
	}
	var now, tick core.Time
	var running ends
	of := map[int64]*traffic{}
	hear := func(events []core.Event) {
		for _, e := range events {
			p := of[e.ID]
			if e.Do != "grant" || p == nil {
				continue
			}
			if p.edge != "" {
				f.Edge(now, e.ID, p.edge)
			}
			if now >= count {
				p.served++
			}
			if p.hangs == 0 || now < p.hangs {
				heap.Push(&running, end{now + p.takes, e.ID})
			}
		}
	}
	for now < until {
		now = tick
		first := -1
		for i, at := range next {
			if at < now {
				now, first = at, i
			}
		}
		switch {
		case len(running) > 0 && running[0].at <= now:
			now = running[0].at
			hear(f.Done(now, heap.Pop(&running).(end).id, core.OK))
		case first < 0:
			tick += 25 * ms
			hear(f.Tick(now))
		default:
			p := paths[first]
			next[first] += gap(p)
			id := int64(len(of) + 1)
			of[id] = p
			if now >= count {
				p.sent++
			}
			hear(f.Arrive(now, core.Request{ID: id, Key: p.key}))
		}
	}
	return f
}

// hanging is a service some of whose paths hang.
type hanging struct {
	name              string
	workers           int64
	configured, edges bool // whether paths are classes of the configuration, and have an edge each
	hang, others      int
	since             core.Time
	least             float64 // of the others' requests that are served
}

func (h hanging) build() (cfg core.Config, paths []*traffic) {
	cfg.Workers = h.workers
	for i := range h.hang + h.others {
		p := &traffic{key: fmt.Sprint("p", i), takes: 10 * ms, rate: float64(h.workers) * 10 / float64(h.others)}
		if h.edges {
			p.edge = fmt.Sprint("e", i)
		}
		if h.configured {
			cfg.Classes = append(cfg.Classes, core.ClassConfig{Name: p.key, Keys: []string{p.key}})
		}
		if i < h.hang {
			p.hangs = h.since
		}
		paths = append(paths, p)
	}
	return cfg, paths
}

// Some paths hang, from their first request on or later. What is asked for otherwise is served: all of it together takes a
// tenth of the workers.
func TestOthersAreServedWhileSeveralHang(t *testing.T) {
	const second = 1000 * ms
	for _, c := range []hanging{
		{"two unknown paths at the start", 8, false, true, 2, 3, 1, 0.95},
		{"two unknown paths at the start", 16, false, true, 2, 3, 1, 0.99},
		{"two unknown paths at the start", 64, false, true, 2, 3, 1, 0.99},
		{"one of several paths without edges", 8, false, false, 1, 2, 20 * second, 0.99},
		{"one of several paths without edges", 64, false, false, 1, 5, 20 * second, 0.99},
		{"two of four classes", 16, true, true, 2, 2, 20 * second, 0.99},
	} {
		t.Run(fmt.Sprintf("%s, %d workers", c.name, c.workers), func(t *testing.T) {
			var sent, served int64
			for seed := range uint64(20) {
				cfg, paths := c.build()
				play(t, cfg, seed, paths, c.since+second, c.since+10*second)
				for _, p := range paths[c.hang:] {
					sent, served = sent+p.sent, served+p.served
				}
			}
			if got := float64(served) / float64(sent); got < c.least {
				t.Errorf("%.3f of the others' requests are served, with seeds 0 to 19; want %.2f and more", got, c.least)
			}
		})
	}
}
