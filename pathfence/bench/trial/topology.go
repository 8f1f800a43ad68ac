package trial

import (
	"maps"
	"slices"
	"time"

	"temper.dev/temper/pathfence/bench/record"
)

// Topology is which services there are, and what a request of each path calls. But for the shop's, who calls nobody is a
// store, and works; all others are services: they pass requests on, have an arm, and hold a worker meanwhile.
type Topology struct {
	start     func(Run, *set) error // starts all of them, and says how clients ask them
	Routes    []Route
	Disturbed string         // the store that disturbances disturb
	Workers   map[string]int // of services that do not have as many as the scale says
	Quick     []string       // stores that do a twentieth of a request's work: caches and the like
	Share     float64        // of the scale's rates, and of its stores' threads
	Without   []string       // arms that make no sense in it
	Settling  time.Duration  // how much longer its services are warmed up than others
	// Services that are in C++ where the others are in Java.
	BesideJava []string
}

// Route is a path's way.
type Route struct {
	Path   string
	Group  string  // which row has its requests: record.Innocent or record.Slowed
	Weight float64 // its part of the group's rate, by the weights of all
	First  Hop     // who is asked by the clients
}

// Hop is somebody who is called, and whom they call in turn, one after the other. A path comes to nobody twice.
type Hop struct {
	Name  string
	Calls []Hop
}

func to(name string, calls ...Hop) Hop { return Hop{name, calls} }

// pair is a topology with one path of each kind.
func pair(innocent, slowed Hop, disturbed string) Topology {
	return Topology{start: Run.startThrift, Share: 1, Disturbed: disturbed, Routes: []Route{
		{record.Slowed, record.Slowed, 1, slowed},
		{record.Innocent, record.Innocent, 1, innocent},
	}}
}

var (
	twoPaths      = pair(to("service", to("innocent store")), to("service", to("slowed store")), "slowed store")
	oneDownstream = pair(to("service", to("slowed store")), to("service", to("slowed store")), "slowed store")
	// A cut of the social network.
	cut = pair(
		to("front end", to("home timeline", to("post storage", to("home store")))),
		to("front end", to("user timeline", to("post storage", to("user store")))), "user store")
)

// scaled is the scale for this topology.
func (t Topology) scaled(s Scale) Scale {
	part := func(p Path) Path {
		p.Rate *= t.Share
		p.Threads = int(float64(p.Threads) * t.Share)
		return p
	}
	s.Slowed, s.Innocent, s.Surge = part(s.Slowed), part(s.Innocent), s.Surge*t.Share
	return s
}

// threads are those that a store works with.
func (t Topology) threads(name string, s Scale) int {
	if name == t.Disturbed {
		return s.Slowed.Threads
	}
	return s.Innocent.Threads
}

// percent is how much of a request's work a store does.
func (t Topology) percent(name string) int64 {
	if slices.Contains(t.Quick, name) {
		return 5
	}
	return 100
}

// capacity is what is needed to measure how much the disturbed store can serve: it is asked without a service before it.
func (t Topology) capacity() Topology {
	for _, r := range t.Routes {
		if h := r.First.find(t.Disturbed); h != nil {
			t.Routes = []Route{{record.Slowed, record.Slowed, 1, *h}}
			return t
		}
	}
	panic("nobody calls " + t.Disturbed) // topologies are written here
}

// find is whoever has a name, from here on; nil where nobody has.
func (h Hop) find(name string) *Hop {
	if h.Name == name {
		return &h
	}
	for _, c := range h.Calls {
		if found := c.find(name); found != nil {
			return found
		}
	}
	return nil
}

// of are a group's routes.
func (t Topology) of(group string) []Route {
	return slices.DeleteFunc(slices.Clone(t.Routes), func(r Route) bool { return r.Group != group })
}

// part is what a route has of its group's rate.
func (t Topology) part(r Route) float64 {
	sum := 0.0
	for _, other := range t.of(r.Group) {
		sum += other.Weight
	}
	return r.Weight / sum
}

// member is a service or a store, and whom it calls, by path.
type member struct {
	name  string
	calls map[string][]string
}

func (m member) paths() []string { return slices.Sorted(maps.Keys(m.calls)) }

// called are all whom it calls, each once.
func (m member) called() []string {
	all := slices.Concat(slices.Collect(maps.Values(m.calls))...)
	slices.Sort(all)
	return slices.Compact(all)
}

// travels says whether services call services. What travels with a request is complete then, where they are fenced: they
// have names, and clients state the target as a deadline.
func (t Topology) travels() bool {
	return slices.ContainsFunc(t.Routes, func(r Route) bool {
		return slices.ContainsFunc(r.First.Calls, func(h Hop) bool { return len(h.Calls) > 0 })
	})
}

func (m member) store() bool { return len(m.called()) == 0 }

// members are all services and stores, who is called before those that call it.
func (t Topology) members() (list []member) {
	calls := map[string]map[string][]string{}
	var walk func(path string, h Hop)
	walk = func(path string, h Hop) {
		if calls[h.Name] == nil {
			calls[h.Name] = map[string][]string{}
		}
		names := []string{}
		for _, c := range h.Calls {
			names = append(names, c.Name)
			walk(path, c)
		}
		calls[h.Name][path] = names
	}
	for _, r := range t.Routes {
		walk(r.Path, r.First)
	}
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		m := member{name, calls[name]}
		for _, called := range m.called() {
			visit(called)
		}
		list = append(list, m)
	}
	for _, r := range t.Routes {
		visit(r.First.Name)
	}
	return list
}

// server is a service of the topology as an arm sees it: its workers, what is asked of it, and the paths that go through.
func (t Topology) server(m member, s Scale) Server {
	if n, ok := t.Workers[m.name]; ok {
		s.Workers = n
	}
	through := map[string]float64{}
	for _, r := range t.Routes {
		if _, ok := m.calls[r.Path]; ok {
			through[r.Group] += t.part(r)
		}
	}
	s.Innocent.Rate *= through[record.Innocent]
	s.Slowed.Rate *= through[record.Slowed]
	return Server{s, m.paths(), slices.Contains(t.BesideJava, m.name)}
}
