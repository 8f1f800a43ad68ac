package core

import (
	"slices"
	"sync/atomic"
)

// Edges are those of a class. Who changes them has the fence to itself; any goroutine may ask, so that most edges of most
// requests need nobody's lock.
type Edges struct {
	names atomic.Pointer[[]string] // what it points to never changes
}

func (e *Edges) all() []string {
	if names := e.names.Load(); names != nil {
		return *names
	}
	return nil
}

func (e *Edges) add(edge string) {
	names := append(slices.Clone(e.all()), edge)
	e.names.Store(&names)
}

// Settled says whether the fence need not be told of an edge: the class has it, or has all that it can have. That of nil, of no
// class, has to be told.
func (e *Edges) Settled(edge string) bool {
	if e == nil {
		return false
	}
	names := e.all()
	return len(names) >= maxEdges || slices.Contains(names, edge)
}

// EdgesOf are those of the class of a request that waits or runs; nil: there is no such request.
func (f *Fence) EdgesOf(id int64) *Edges {
	if r := f.requests[id]; r != nil {
		return &r.class.edges
	}
	return nil
}
