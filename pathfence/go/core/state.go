package core

import (
	"maps"
	"slices"
)

// Counts are totals since the start.
type Counts struct {
	Granted, Failed, Missed, Shed int64
}

// State is what is shown of a class.
type State struct {
	Class    string `json:"class"`
	Limit    int64  `json:"limit"`
	Reserve  int64  `json:"reserve"`
	InFlight int64  `json:"in_flight"`
	Queued   int64  `json:"queued"`
	Lent     int64  `json:"lent"`
	Granted  int64  `json:"granted"`
	Shed     int64  `json:"shed"`
	Missed   int64  `json:"missed"`
	Failed   int64  `json:"failed"`
	Knee     int64  `json:"knee"`
	Hold     Time   `json:"hold_ns"`
	Reason   string `json:"reason,omitempty"`
}

// States shows the classes that were ever asked for, and those that are configured.
func (f *Fence) States() []State {
	var out []State
	for _, c := range f.classes {
		if c.unknown && c.counts.Granted+c.counts.Shed == 0 && len(c.queue) == 0 {
			continue
		}
		limit, reason := c.shownLimit()
		out = append(out, State{c.name, limit, c.reserve, c.inFlight, int64(len(c.queue)), max(0, c.inFlight-c.reserve),
			c.counts.Granted, c.counts.Shed, c.counts.Missed, c.counts.Failed, c.knee, c.hold, reason})
	}
	return out
}

const mostShownKeys = 16 // of one class

// Keys are those that are known to be of each class by its name: configured, learned, or, of a bucket, being learned; the
// first by name.
func (f *Fence) Keys() map[string][]string {
	all := map[string]bool{}
	for key := range f.keys.configured {
		all[key] = true
	}
	for key := range f.keys.learned {
		all[key] = true
	}
	for _, k := range f.keys.candidates {
		if k != nil {
			all[k.key] = true
		}
	}
	of := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if name := f.classOf(key).name; len(of[name]) < mostShownKeys {
			of[name] = append(of[name], key)
		}
	}
	return of
}

// shownLimit is the most that the class may have in flight, and why.
func (c *class) shownLimit() (limit int64, reason string) {
	if c.group != nil && c.group.limit < c.limit {
		return c.group.limit, "together"
	}
	return c.limit, c.reason
}

// Drain is in what time the requests of this key's class that wait or are in flight will have been served, as far as that is
// known.
func (f *Fence) Drain(key string) Time {
	c := f.classOf(key)
	limit, _ := c.shownLimit()
	return (int64(len(c.queue)) + c.inFlight) * c.hold / max(1, limit)
}

// Pool is what is shown of all classes together.
type Pool struct {
	Off                        bool
	Workers, InFlight, Waiting int64
}

// Pool shows the workers.
func (f *Fence) Pool() Pool {
	return Pool{f.cfg.Off, f.cfg.Workers, f.inFlight, int64(f.waiting)}
}

// Runs says whether a request is in flight.
func (f *Fence) Runs(id int64) bool {
	r := f.requests[id]
	return r != nil && !r.waits
}
