package trial

import (
	"container/heap"
	"testing"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/go/core"
)

// modelled is a topology whose services are fenced by the reference model, and whose processes cost nothing but the work
// of stores. Calls come in no time.
type modelled struct {
	now, order int64
	events     agenda
	nodes      map[string]*node
	ids        int64
	slow       func(now int64) int64 // so many times as long the disturbed store takes
}

// node is a service or a store.
type node struct {
	*modelled
	fence   *core.Fence // nil: a store
	waiting map[int64]*request

	threads   int
	percent   int64
	disturbed bool
	busy      int
	queue     []*request
}

// request is one at a node; over is told whether it was answered.
type request struct {
	load.Arrival
	hop      Hop
	deadline int64
	over     func(answered bool)
}

type event struct {
	at, order int64
	do        func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any     { o := *a; x := o[len(o)-1]; *a = o[:len(o)-1]; return x }

func (m *modelled) at(t int64, do func()) {
	m.order++
	heap.Push(&m.events, event{t, m.order, do})
}

// model makes the topology's services and stores, with a class for each path or with classes that are learned.
func (t Topology) model(s Scale, end int64, config func(Server) core.Config) *modelled {
	m := &modelled{nodes: map[string]*node{}}
	for _, member := range t.members() {
		n := &node{modelled: m, waiting: map[int64]*request{}}
		m.nodes[member.name] = n
		if member.store() {
			n.threads, n.percent, n.disturbed = t.threads(member.name, s), t.percent(member.name), member.name == t.Disturbed
			continue
		}
		var err error
		if n.fence, err = core.New(config(t.server(member, s)), 0); err != nil {
			panic(err)
		}
		for at := int64(0); at < end; at += 25e6 {
			m.at(at, func() { n.carryOut(n.fence.Tick(m.now)) })
		}
	}
	return m
}

func (n *node) ask(r *request) {
	switch {
	case n.fence != nil:
		n.ids++
		n.waiting[n.ids] = r
		n.carryOut(n.fence.Arrive(n.now, core.Request{ID: n.ids, Key: r.Path, Deadline: r.deadline}))
	case n.busy < n.threads:
		n.work(r)
	default:
		n.queue = append(n.queue, r)
	}
}

func (n *node) work(r *request) {
	n.busy++
	takes := r.Work.Nanoseconds() * n.percent / 100
	if n.disturbed {
		takes *= n.slow(n.now)
	}
	n.at(n.now+takes, func() {
		n.busy--
		if len(n.queue) > 0 {
			next := n.queue[0]
			n.queue = n.queue[1:]
			n.work(next)
		}
		r.over(true)
	})
}

func (n *node) carryOut(decisions []core.Event) {
	for _, d := range decisions {
		r := n.waiting[d.ID]
		delete(n.waiting, d.ID)
		switch d.Do {
		case "grant":
			n.passOn(d.ID, r, r.hop.Calls)
		case "shed":
			n.at(n.now, func() { r.over(false) })
		}
	}
}

// passOn calls those that are left, one after the other, and answers.
func (n *node) passOn(id int64, r *request, calls []Hop) {
	if len(calls) == 0 {
		n.carryOut(n.fence.Done(n.now, id, core.OK))
		r.over(true)
		return
	}
	n.carryOut(n.fence.Edge(n.now, id, inTravel(calls[0].Name)))
	n.at(n.now, func() {
		n.nodes[calls[0].Name].ask(&request{r.Arrival, calls[0], r.deadline, func(answered bool) {
			if answered {
				n.passOn(id, r, calls[1:])
				return
			}
			n.carryOut(n.fence.Done(n.now, id, core.Fail))
			r.over(false)
		}})
	})
}

// slowed runs a topology whose disturbed store gets slow, and says how many requests a second of each group were due while
// it was, and how many of these were answered in time.
func slowed(t Topology, config func(Server) core.Config, seed uint64) (due, good map[string]float64) {
	s, end := t.scaled(Standard), Full.end().Nanoseconds()
	m := t.model(s, end, config)
	m.slow = func(now int64) int64 {
		if now >= Full.WarmUp.Nanoseconds() && now < Full.over().Nanoseconds() {
			return 10
		}
		return 1
	}
	due, good = map[string]float64{}, map[string]float64{}
	second := 1 / Full.Disturbed.Seconds()
	routes := map[string]Route{}
	var flows []load.Flow
	for _, r := range t.Routes {
		routes[r.Path] = r
		rate := t.part(r) * map[string]Path{record.Innocent: s.Innocent, record.Slowed: s.Slowed}[r.Group].Rate
		flows = append(flows, load.Flow{Path: r.Path, Rate: load.Constant(rate), Peak: rate, Work: s.Slowed.Work})
	}
	for _, a := range load.Schedule(flows, Full.end(), seed) {
		m.at(a.At.Nanoseconds(), func() {
			deadline, route, counts := m.now+s.Target.Nanoseconds(), routes[a.Path], a.At >= Full.WarmUp && a.At < Full.over()
			if counts {
				due[route.Group] += second
			}
			m.nodes[route.First.Name].ask(&request{a, route.First, deadline, func(answered bool) {
				if counts && answered && m.now <= deadline {
					good[route.Group] += second
				}
			}})
		})
	}
	for len(m.events) > 0 && m.events[0].at < end {
		e := heap.Pop(&m.events).(event)
		m.now = e.at
		e.do()
	}
	return due, good
}

// Many paths of low rate that use one slow store between them do not crowd it: what it can serve in time, it serves. Its
// four threads take 40 requests a second; a tenth of these have more work than fits into the target.
func TestSlowStoreOfManyPaths(t *testing.T) {
	for name, config := range map[string]func(Server) core.Config{"a class for each path": classed, "learned classes": plain} {
		innocent, served, seeds := 1.0, 0.0, uint64(5)
		for seed := range seeds {
			due, good := slowed(social, config, seed+1)
			innocent = min(innocent, good[record.Innocent]/due[record.Innocent])
			served += good[record.Slowed] / float64(seeds)
		}
		t.Logf("%s: %.3f of the innocent paths' requests, %.1f of the slowed paths' a second", name, innocent, served)
		if innocent < 0.99 || served < 22 {
			t.Errorf("%s: %.3f of the innocent paths' requests were answered in time, and %.1f of the slowed paths' a second", name, innocent, served)
		}
	}
}
