package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// random is a source whose seed is in the test's log.
func random(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// checker plays random events, and holds every decision against what must be true of any.
type checker struct {
	t       *testing.T
	f       *Fence
	waiting map[int64]bool
	running map[int64]bool
	workers int64 // at most, since the last call
	groups  int   // that were looked at
}

func (c *checker) take(events []Event) {
	for _, e := range events {
		switch e.Do {
		case "grant":
			if e.Reason != "inherited" {
				if !c.waiting[e.ID] {
					c.t.Fatalf("request %d was granted and did not wait", e.ID)
				}
			}
			delete(c.waiting, e.ID)
			c.running[e.ID] = true
		case "shed":
			if !c.waiting[e.ID] {
				c.t.Fatalf("request %d was shed and did not wait", e.ID)
			}
			delete(c.waiting, e.ID)
		case "limit":
			if e.Limit < 1 || e.Limit > c.workers {
				c.t.Fatalf("limit %d of %s, with %d workers", e.Limit, e.Class, c.workers)
			}
		}
	}
	c.workers = c.f.cfg.Workers
	sum, queued := int64(0), len(c.f.nested)
	for _, k := range c.f.classes {
		if k.inFlight < 0 {
			c.t.Fatalf("class %s has %d in flight", k.name, k.inFlight)
		}
		sum += k.inFlight
		queued += len(k.queue)
	}
	for _, g := range c.f.groups {
		held := int64(0)
		for _, k := range g.members {
			held += k.inFlight
			if k.group != g || !k.suspect {
				c.t.Fatalf("class %s is in the group of %s, and does not know", k.name, g.edge)
			}
		}
		if held != g.inFlight || len(g.members) < 2 {
			c.t.Fatalf("the group of %s has %d members, and %d in flight; its members have %d", g.edge, len(g.members), g.inFlight, held)
		}
		c.groups++
	}
	if sum != c.f.inFlight || queued != c.f.waiting || c.f.waiting != len(c.waiting) {
		c.t.Fatalf("in flight %d, by class %d; %d queued, %d wait, %d should", c.f.inFlight, sum, queued, c.f.waiting, len(c.waiting))
	}
}

func anyOf(r *rand.Rand, m map[int64]bool) int64 {
	keys := make([]int64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	// The order of a map is not the seed's.
	best, at := int64(0), r.Uint64()
	for i, k := range keys {
		if h := fnv1a(fmt.Sprint(k, at)); i == 0 || h > fnv1a(fmt.Sprint(best, at)) {
			best = k
		}
	}
	return best
}

func TestNoPermitIsLostOrGivenTwice(t *testing.T) {
	r := random(t)
	groups := 0
	for range 60 {
		cfg := Config{Workers: 1 + r.Int64N(20), Queue: 1 + r.Int64N(40)}
		for i := range r.IntN(10) {
			cfg.Classes = append(cfg.Classes, ClassConfig{Name: fmt.Sprint("c", i), Keys: []string{fmt.Sprint("k", i)}, Weight: 1 + r.Int64N(300)})
		}
		f, err := New(cfg, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := &checker{t: t, f: f, workers: cfg.Workers, waiting: map[int64]bool{}, running: map[int64]bool{}}
		now, id := Time(0), int64(0)
		for range 2000 {
			now += r.Int64N(4 * ms)
			switch x := r.IntN(100); {
			case x < 45:
				id++
				in := Request{ID: id, Key: fmt.Sprint("k", r.IntN(14))}
				if r.IntN(10) == 0 {
					in.Depth = r.Int64N(10)
				}
				if r.IntN(10) == 0 && len(c.running) > 0 {
					in.Parent = anyOf(r, c.running)
				}
				if r.IntN(3) == 0 {
					in.Deadline = now + r.Int64N(100*ms)
				}
				c.waiting[id] = true
				c.take(f.Arrive(now, in))
			case x < 90 && len(c.running) > 0:
				end := anyOf(r, c.running)
				delete(c.running, end)
				c.take(f.Done(now, end, []Outcome{OK, OK, OK, Fail, Cancel}[r.IntN(5)]))
			case x < 92 && len(c.waiting) > 0:
				end := anyOf(r, c.waiting)
				delete(c.waiting, end)
				c.take(f.Done(now, end, Cancel))
			case x < 94 && len(c.running) > 0:
				c.take(f.Edge(now, anyOf(r, c.running), fmt.Sprint("edge", r.IntN(5))))
			case x == 94:
				now += r.Int64N(300 * ms)
			case x == 95:
				cfg.Workers = 1 + r.Int64N(20)
				events, err := f.Reload(now, cfg)
				if err != nil {
					t.Fatal(err)
				}
				c.workers = max(c.workers, cfg.Workers)
				c.take(events)
			case x == 96:
				c.take(f.Switch(now, r.IntN(2) == 0))
			default:
				c.take(f.Tick(now - r.Int64N(2*ms)))
			}
		}
		c.take(f.Switch(now, true))
		for len(c.running) > 0 {
			end := anyOf(r, c.running)
			delete(c.running, end)
			c.take(f.Done(now, end, OK))
		}
		if f.inFlight != 0 || len(f.requests) != 0 || len(c.waiting) != 0 {
			t.Fatalf("at the end %d are in flight, %d run, %d wait", f.inFlight, len(f.requests), len(c.waiting))
		}
		groups += c.groups
	}
	if groups == 0 {
		t.Fatal("no classes were late together")
	}
}

func TestNeverMoreThanTheWorkers(t *testing.T) {
	r := random(t)
	f, err := New(Config{Workers: 5, Classes: []ClassConfig{{Name: "a", Keys: []string{"a"}}, {Name: "b", Keys: []string{"b"}}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	running := map[int64]bool{}
	for i := range int64(20000) {
		now := i * ms
		events := slices.Clone(f.Arrive(now, Request{ID: i + 1, Key: []string{"a", "b", "x", "y"}[r.IntN(4)], Depth: r.Int64N(3)}))
		if len(running) > 0 && r.IntN(2) == 0 {
			end := anyOf(r, running)
			delete(running, end)
			events = append(events, f.Done(now, end, OK)...)
		}
		for _, e := range events {
			if e.Do == "grant" {
				running[e.ID] = true
			}
		}
		if len(running) > 5 {
			t.Fatalf("%d in flight on 5 workers", len(running))
		}
	}
}

// With more classes than workers each gets its turn, however many wait for the others.
func TestNobodyIsPassedOver(t *testing.T) {
	var cfg = Config{Workers: 2, Without: Parts{NoShed: true}}
	for i := range 6 {
		cfg.Classes = append(cfg.Classes, ClassConfig{Name: fmt.Sprint("c", i), Keys: []string{fmt.Sprint("k", i)}})
	}
	f, err := New(cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	var granted []Event
	take := func(events []Event) {
		for _, e := range events {
			if e.Do == "grant" {
				granted = append(granted, e)
			}
		}
	}
	for i := range int64(120) {
		take(f.Arrive(i, Request{ID: i + 1, Key: fmt.Sprint("k", i%6), Deadline: 1000 * ms}))
	}
	turns := map[string]int{}
	for i := range 60 {
		turns[granted[i].Class]++
		take(f.Done(Time(i+1)*ms, granted[i].ID, OK))
	}
	for class, n := range turns {
		if n < 9 || n > 11 {
			t.Errorf("class %s had %d of 60 turns", class, n)
		}
	}
	if len(turns) != 6 {
		t.Errorf("of six classes %d had a turn: %v", len(turns), turns)
	}
}

func TestMillionForgedKeys(t *testing.T) {
	f, err := New(Config{Workers: 16, Classes: []ClassConfig{{Name: "a", Keys: []string{"a"}}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	classes := len(f.classes)
	for i := range int64(1_000_000) {
		now := i * 10_000
		for _, e := range f.Arrive(now, Request{ID: i + 1, Key: fmt.Sprintf("forged%d", i)}) {
			if e.Do == "grant" && i%2 == 0 {
				f.Done(now, e.ID, OK)
			}
		}
		if f.inFlight > 16-1 {
			t.Fatalf("forged keys hold %d of 16 workers", f.inFlight)
		}
	}
	if len(f.classes) != classes || len(f.keys.learned) > 0 {
		t.Fatalf("%d classes, %d learned keys", len(f.classes), len(f.keys.learned))
	}
	now := int64(1_000_000) * 10_000
	if e := f.Arrive(now, Request{ID: -1, Key: "a"}); len(e) == 0 || e[len(e)-1].ID != -1 || e[len(e)-1].Do != "grant" {
		t.Fatalf("a request of a known class beside forged ones: %v", e)
	}
}

func TestKneeOfExactCurves(t *testing.T) {
	for k := int64(2); k <= 40; k++ {
		var ring []point
		for n := int64(1); n <= 2*k; n++ {
			ring = append(ring, point{n: n * 1000, good: 700 * min(n, k)})
		}
		if got, rising := knee(ring); got != k || rising {
			t.Errorf("a knee at %d was found at %d (rising: %v)", k, got, rising)
		}
		if falling(ring) {
			t.Errorf("a plateau from %d on counts as falling", k)
		}
	}
}

func TestFallingGoodput(t *testing.T) {
	var ring []point
	for n := int64(10); n < 30; n++ {
		ring = append(ring, point{n: n * 1000, good: 100_000 - 3000*n})
	}
	if !falling(ring) {
		t.Error("goodput that falls with concurrency does not count as falling")
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no workers":   {},
		"two names":    {Workers: 1, Classes: []ClassConfig{{Name: "a"}, {Name: "a"}}},
		"two keys":     {Workers: 1, Classes: []ClassConfig{{Name: "a", Keys: []string{"k"}}, {Name: "b", Keys: []string{"k"}}}},
		"a bad key":    {Workers: 1, Classes: []ClassConfig{{Name: "a", Keys: []string{"k k"}}}},
		"own name":     {Workers: 1, Classes: []ClassConfig{{Name: "~u0"}}},
		"weight":       {Workers: 1, Classes: []ClassConfig{{Name: "a", Weight: 1001}}},
		"short window": {Workers: 1, Window: 1},
	} {
		if _, err := New(cfg, 0); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
